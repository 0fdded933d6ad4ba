# The commands of docs/registration.md work, in the order in which they stand there, and make what the text says.
set -u
root=$PWD
pnetc=$(realpath "${PNETC:-build/release/pnetc}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
awk '/^```sh/ { inside = 1; next } /^```/ { inside = 0 } inside' docs/registration.md >"$work/commands"
count=$(wc -l <"$work/commands")
[ "$count" -ge 8 ] || { echo "only $count commands found: is the extraction broken?" >&2; exit 1; }
ln -s "$root/models" "$work/models"
mkdir "$work/bin"
ln -s "$pnetc" "$work/bin/pnetc"
PATH=$work/bin:$PATH
export OMP_NUM_THREADS=2 OMP_WAIT_POLICY=passive
cd "$work" || exit 1
while read -r line; do
    if ! sh -c "$line" >output 2>&1 </dev/null; then
        printf 'docs/registration.md: %s\n' "$line" >&2
        tail -n 20 output >&2
        exit 1
    fi
done <commands
for file in out/registration/aligned.ply out/registration/pair.svg out/registration/each.jsonl out/registration/indoors/report.html out/registration/outdoors/report.html; do
    [ -s "$file" ] || { echo "docs/registration.md: $file was not made" >&2; exit 1; }
done
[ "$(wc -l <out/registration/each.jsonl)" = 8 ] || { echo 'each.jsonl does not hold 8 pairs' >&2; exit 1; }
# The recipe of the page is that of bench/registration.sh on a GPU; `false` trains nothing.
recipe='^(batch_size|optimizer|lr|schedule|weight_decay|augment):'
mkdir bench_recipe && echo entries >bench_recipe/indoors.yaml
PNETC=false bash "$root/bench/registration.sh" run -o bench_recipe --device cuda --runs 10cm-native-s1 >output 2>&1
grep -E "$recipe" bench_recipe/run_indoors.yaml | sort >expected
[ "$(wc -l <expected)" = 6 ] || { echo 'bench/registration.sh wrote no recipe' >&2; exit 1; }
grep -E "$recipe" out/registration/recipe/config.yaml | sort | diff expected - >&2 ||
    { echo 'docs/registration.md trains by another recipe than bench/registration.sh' >&2; exit 1; }
# Every value that a row gives is in the table of the page.
awk -F '`' '/^\| `/ { for (i = 2; i <= NF; i += 2) print $i }' "$root/docs/registration.md" >known
"$pnetc" eval models/fcgf_3dmatch.pnet --weights out/registration/indoors --config models/fcgf_3dmatch.yaml --data out/registration/rooms --split test >values || exit 1
sed -nE 's/^  ([a-z_]+) .*/\1/p' values | grep -vE '^(strict|rmse)_r[rt]e_success' | sort -u >given
[ "$(wc -l <given)" -ge 10 ] || { echo 'no values to compare' >&2; exit 1; }
missing=$(sort -u known | comm -13 - given)
[ -z "$missing" ] || { printf 'docs/registration.md says nothing of %s\n' "$missing" >&2; exit 1; }
echo "$count commands"
