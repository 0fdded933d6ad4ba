# What README.md and the other documents say about the repository is so: commands, modes, links, the command for tests.
set -u
pnetc=${PNETC:-build/release/pnetc}
failed=0

fail() {
    echo "$1" >&2
    failed=1
}

# The table of commands is the list that pnetc prints.
"$pnetc" --help | sed -nE 's/^  ([a-z]+) +(.+)$/| `pnetc \1` | \2 |/p' > "${TMPDIR:-/tmp}/commands.$$"
[ -s "${TMPDIR:-/tmp}/commands.$$" ] || fail "pnetc --help lists no commands"
grep '^| `pnetc ' README.md | diff -u "${TMPDIR:-/tmp}/commands.$$" - || fail "README.md: the table of commands differs from pnetc --help"
rm -f "${TMPDIR:-/tmp}/commands.$$"

# What is run for tests is what the README says.
grep -qx 'sh tests/run.sh' README.md || fail "README.md: the command for tests is missing"
if [ -e .ci/run ]; then
    grep -q 'sh tests/bare.sh sh tests/run.sh ' .ci/run || fail ".ci/run does not run what README.md says"
fi

# The rows of a table have as many cells as its head.
for document in README.md docs/*.md bench/notes/*.md; do
    awk '/^```/ { code = !code } code || !/^\|/ { cells = 0; next }
        { row = $0; gsub(/\\\|/, "", row); n = gsub(/\|/, "", row) }
        cells && n != cells { printf "%s:%d: a row of another width\n", FILENAME, FNR; bad = 1 }
        { cells = n }
        END { exit bad }' "$document" >&2 || failed=1
done

# The commands of a page write into a folder of the page's own, where no other page's data lies.
for page in training registration completion; do
    awk '/^```sh/ { inside = 1; next } /^```/ { inside = 0 } inside' docs/$page.md |
        grep -oE ' (-o|--each|--picture) [^ ]+' | grep -vE " out/$page/" &&
        fail "docs/$page.md writes elsewhere than to out/$page"
done

# A drawing needs no folder to be there.
drawn=$(mktemp -d)
"$pnetc" graph models/rooms.pnet -o "$drawn/out/new/rooms.svg" && [ -s "$drawn/out/new/rooms.svg" ] || fail "pnetc graph draws nothing into a new folder"
rm -r "$drawn"

# Links lead to files, and their #anchors to headings.
anchors() {
    sed -nE 's/^#+ +//p' "$1" | tr 'A-Z' 'a-z' | sed -E 's/[^a-z0-9_ -]//g; s/ /-/g'
}
links=0
for document in README.md CHANGELOG.md docs/*.md bench/notes/*.md; do
    for link in $(grep -oE '\]\([^)]+\)' "$document" | sed -E 's/^\]\(//; s/\)$//'); do
        case $link in
        http*) continue ;;
        esac
        links=$((links + 1))
        path=${link%%#*}
        target=$(dirname "$document")/$path
        [ -n "$path" ] || target=$document
        [ -e "$target" ] || fail "$document: no file for the link $link"
        case $link in
        *'#'*) anchors "$target" | grep -qxF -- "${link#*#}" || fail "$document: no heading for the link $link" ;;
        esac
    done
done
[ $links -ge 10 ] || fail "only $links links found: is the search broken?"
exit $failed
