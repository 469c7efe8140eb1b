//! Bare numbers of 32 or 64 bits.

use super::super::sink::{About, Sink};
use super::Piece;

macro_rules! bare {
    ($name:ident, $type:ty, $doc:literal) => {
        #[doc = $doc]
        pub(crate) struct $name<const BIG: bool>;

        impl<const BIG: bool> Piece for $name<BIG> {
            fn width(&self) -> usize {
                size_of::<$type>()
            }

            #[inline]
            fn read(&mut self, bytes: &[u8], sink: &mut Sink) -> Result<(), String> {
                let bytes = bytes.try_into().map_err(|_| "not a whole number".to_owned())?;
                let id = if BIG {
                    <$type>::from_be_bytes(bytes)
                } else {
                    <$type>::from_le_bytes(bytes)
                };
                match u64::try_from(id) {
                    Ok(block) => sink.object(block, 0, About::default()),
                    #[allow(unreachable_patterns)]
                    Err(_) => {
                        return Err(format!(
                            "the block is {id}: negative numbers name nothing. Numbers without a sign, such as hashes, are --format u32le, u32be, u64le or u64be; else the bytes are in the other order, or the numbers have another width"
                        ));
                    }
                }
                Ok(())
            }
        }
    };
}

bare!(U32, u32, "Numbers of 32 bits.");
bare!(I32, i32, "Signed numbers of 32 bits.");
bare!(U64, u64, "Numbers of 64 bits.");
bare!(I64, i64, "Signed numbers of 64 bits.");
