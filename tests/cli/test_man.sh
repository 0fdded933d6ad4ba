# The pages of the manual: one for each command of the help texts and no other, with each of its options and what the help says of
# it; they are right for mandoc and man, where those are there.
. tests/cli/common.sh
pages=$(dirname "$(realpath "$pnetc")")/pages/man1
[ -d "$pages" ] || { echo 'this build has no pages'; exit 77; }
# The text of a page without roff, a line.
text() { sed 's/\\f[BIR]//g; s/\\-/-/g; s/\\e/\\/g; s/\\&//g' "$1" | tr '\n' ' '; }
listed() { "$pnetc" "$@" --help | sed -nE '/^exit codes/q; s/^  ([a-z]+)  +.*/\1/p'; }
# says_all PAGE COMMAND..: every option of the command's help text, and what is said of it.
says_all() {
    local page=$1 option help plain count=0
    shift
    plain=$(text "$page")
    while IFS=$'\t' read -r option help; do
        count=$((count + 1))
        case $plain in
        *"$option $help"*) pass ;;
        *) fail "$page does not say: $option $help" ;;
        esac
    done < <("$pnetc" "$@" --help | sed -nE 's/^  (-[a-z], |    )(--[^ ]+( [^ ]+)?)  +(.*)/\1\2\t\4/p' | sed -E 's/^ +//' | grep -v '^-h')
    total=$((total + count))
}

total=0
wanted=pnetc.1
for command in $(listed); do
    wanted="$wanted
pnetc-$command.1"
    says_all "$pages/pnetc-$command.1" "$command"
    for one in $(listed "$command"); do
        wanted="$wanted
pnetc-$command-$one.1"
        says_all "$pages/pnetc-$command-$one.1" "$command" "$one"
    done
done
check "$total options" test "$total" -gt 100
check 'the pages' test "$(cd "$pages" && printf '%s\n' *.1 | sort)" = "$(printf '%s\n' "$wanted" | sort)"
for page in "$pages"/*.1; do
    check "$page is packed" sh -c "gzip -dc '$page.gz' | cmp - '$page'"
    check "the version of $page" grep -q "\"pnet $("$pnetc" --version | sed -n 's/^pnetc //p')\"" "$page"
    for other in $(sed -nE 's/^\.BR ([^ ]+) \(1\),?$/\1/p' "$page" | tr -d '\\'); do
        check "$page leads to $other" test -f "$pages/$other.1"
    done
done
check 'pnetc.1 has the exit codes' grep -q 'device is not there' "$pages/pnetc.1"
if command -v mandoc >/dev/null; then
    mandoc -Tlint "$pages"/*.1 >"$out" 2>&1
    check "mandoc: $(head -n 3 "$out")" test ! -s "$out"
else
    echo 'mandoc is not there: not tested'
fi
if command -v man >/dev/null && command -v groff >/dev/null; then
    for page in "$pages"/*.1; do
        LC_ALL=C.UTF-8 MANWIDTH=80 man --warnings -E UTF-8 -l -Tutf8 -Z "$page" >/dev/null 2>"$err"
        check "man $page: $(head -n 3 "$err")" test ! -s "$err"
    done
else
    echo 'man is not there: not tested'
fi
finish
