# The golden files of plans and passes: each command still prints what stands there.
set -u
pnetc=${PNETC:?names the program to test}
work=$(mktemp -d "${TMPDIR:-/tmp}/pnet-golden-XXXXXX")
trap 'rm -rf "$work"' EXIT
other_gpu=
if command -v nvidia-smi >/dev/null && nvidia-smi -L 2>/dev/null | grep GPU | grep -qvE 'H100|H200'; then
    other_gpu=yes # which has other kernels
fi
status=0 files=0
for file in tests/golden/*/*.txt; do
    case $file in tests/golden/cuda/*) [ -z "$other_gpu" ] || continue ;; esac
    files=$((files + 1))
    sh tests/golden/fill.sh "$pnetc" "$file" >"$work/now" || status=1
    if ! cmp -s "$file" "$work/now"; then
        diff -u "$file" "$work/now" | head -n 60
        echo "$file is another text now: where that is meant, sh tests/golden/write.sh"
        status=1
    fi
done
# every pass and every model has its file
for pass in $("$pnetc" check --help | sed -n '/after a pass:/,/^$/p' | tr -d ',.' | tr ' ' '\n' | sed '1,/pass:/d'); do
    [ -f "tests/golden/passes/$pass.txt" ] || { echo "tests/golden/passes has no $pass.txt"; status=1; }
done
for model in models/*.pnet; do
    for folder in models cuda; do
        [ -f "tests/golden/$folder/$(basename "$model" .pnet).txt" ] ||
            { echo "tests/golden/$folder has no file for $model"; status=1; }
    done
done
[ $files -ge 15 ] || { echo "only $files golden files"; status=1; }
exit $status
