# The table of questions of docs/where.md: its paths exist, and a file defines or declares what is named behind it.
set -u
status=0 rows=0
while IFS='|' read -r _ question answer _; do
    rows=$((rows + 1))
    rest=$answer path=
    while printf '%s' "$rest" | grep -q '`'; do
        word=$(printf '%s' "$rest" | cut -d'`' -f2)
        rest=$(printf '%s' "$rest" | cut -d'`' -f3-)
        case $word in
        */*)
            path=$word
            [ -e "$path" ] || { echo "docs/where.md:$question: $path is not there"; status=1; }
            ;;
        class_ | PNET_LOSS) ;;
        *)
            grep -qw -- "$word" "$path" 2> /dev/null ||
                { echo "docs/where.md:$question: no $word in $path"; status=1; }
            ;;
        esac
    done
done <<EOF
$(sed -n '/^## Questions/,/^## Folders/p' docs/where.md | grep '^| ' | grep -v '^| question')
EOF
[ $rows -ge 15 ] || { echo "only $rows rows found"; status=1; }
exit $status
