# docs/layers.md is what `pnetc ops --markdown` prints.
set -u
pnetc=${PNETC:-build/release/pnetc}
"$pnetc" ops --markdown | diff -u docs/layers.md - && exit 0
echo "docs/layers.md is out of date: pnetc ops --markdown > docs/layers.md" >&2
exit 1
