//! Twitter's caches: `seconds,key,key bytes,value bytes,client,operation,seconds to live` (Yang et al., OSDI 2020). Keys are names.

use super::super::options::ReadOptions;
use super::super::record::{Kind, tenant_of};
use super::super::sink::{About, Sink};
use super::LineParser;
use super::names::Names;
use super::number::{columns, shown, trim, whole};

pub(super) struct Twitter(Names);

impl Twitter {
    pub(super) fn new(options: &ReadOptions) -> Self {
        Self(Names::within(options.max_memory))
    }
}

impl LineParser for Twitter {
    fn line(&mut self, line: &[u8], sink: &mut Sink) -> Result<(), String> {
        if trim(line).is_empty() {
            return Ok(());
        }
        let [time, key, key_bytes, bytes, client, operation, live] = columns(line)?;
        let time = whole(time, "the time (column 1)")?;
        whole(key_bytes, "the key's size (column 3)")?;
        let bytes = whole(bytes, "the value's size (column 4)")?;
        let client = whole(client, "the client (column 5)")?;
        let kind = match operation {
            b"get" | b"gets" => Kind::Read,
            b"set" | b"add" | b"replace" | b"cas" | b"append" | b"prepend" | b"incr" | b"decr" => {
                Kind::Write
            }
            b"delete" => Kind::Remove,
            other => return Err(format!("column 6 is '{}', no operation", shown(other))),
        };
        whole(live, "the time to live (column 7)")?;
        let block = u64::from(self.0.number(key)?);
        let about = About {
            tenant: tenant_of(client),
            ..About::new(time, kind, 0)
        };
        sink.object(block, u32::try_from(bytes).unwrap_or(u32::MAX), about);
        Ok(())
    }
}
