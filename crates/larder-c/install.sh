#!/bin/sh
# Installs larder.h, liblarder and larder.pc where a C compiler finds them, and the libraries that can be preloaded where
# `larder run` finds them, if they are built, each by a command of its own:
#
#   for package in larder-c larder-malloc larder-malloc-debug larder-sqlite-preload; do cargo build --release -p $package; done
#   crates/larder-c/install.sh --prefix /usr/local        (DESTDIR is honoured)
#
# `cargo cinstall -p larder-c` does the same where cargo-c is installed, but for those.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
from=$here/../../target/release
prefix=/usr/local
while [ $# -gt 0 ]; do
  case $1 in
    --prefix) prefix=${2:?--prefix needs a folder}; shift 2 ;;
    --from) from=${2:?--from needs a folder}; shift 2 ;;
    *) echo "usage: install.sh [--prefix FOLDER] [--from FOLDER with liblarder_c.so]" >&2; exit 2 ;;
  esac
done
for file in liblarder_c.so liblarder_c.a; do
  [ -e "$from/$file" ] || {
    echo "$from/$file is not there; build it with: cargo build --release -p larder-c" >&2
    exit 1
  }
done
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"$/\1/p' "$here/../../Cargo.toml")
major=${version%%.*}
root=${DESTDIR:-}$prefix
mkdir -p "$root/include" "$root/lib/pkgconfig"
install -m 644 "$here/include/larder.h" "$root/include/larder.h"
install -m 755 "$from/liblarder_c.so" "$root/lib/liblarder.so.$version"
ln -sf "liblarder.so.$version" "$root/lib/liblarder.so.$major"
ln -sf "liblarder.so.$major" "$root/lib/liblarder.so"
install -m 644 "$from/liblarder_c.a" "$root/lib/liblarder.a"
sed -e "s|@prefix@|$prefix|" -e "s|@version@|$version|" "$here/larder.pc.in" >"$root/lib/pkgconfig/larder.pc"
echo "installed larder $version into $root"
# From packages of their own: a program that links liblarder does not need them.
for package in larder-malloc larder-malloc-debug larder-sqlite-preload; do
  library=lib$(echo $package | tr - _).so
  if [ -e "$from/$library" ]; then
    install -m 755 "$from/$library" "$root/lib/$library"
  else
    echo "without $library, which is not in $from; it is built with: cargo build --release -p $package"
  fi
done
