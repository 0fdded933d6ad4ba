# The .pnet blocks of the documents do what the documents say of them.
#   ```pnet             a complete model: `pnetc check` has nothing to say about it
#   ```pnet NAME.pnet   a file that later blocks of the same document include
#   ```pnet error       exit code 3, and exactly the text of the next ```text block
#   ```pnet warning     exit code 0, and exactly that text
set -u
pnetc=$(realpath "${PNETC:-build/release/pnetc}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
models=0
messages=0
failed=0

fail() {
    echo "$1" >&2
    [ -s "$2" ] && cat "$2" >&2
    failed=1
}

# Blocks as NUMBER.KIND in the order of the document; KIND: pnet, error, warning, text, or a file's own name.
extract() {
    awk -v out="$2" '
        /^```/ && inside { inside = 0; close(file); next }
        /^```(pnet|text)/ {
            kind = $1 == "```text" ? "text" : NF > 1 ? $2 : "pnet"
            file = sprintf("%s/%03d.%s:%d", out, ++n, kind, NR + 1)
            printf "" > file
            inside = 1
            next
        }
        /^```/ { inside = 1; file = "/dev/null"; next }
        inside { print > file }' "$1"
}

check_document() {
    document=$1
    blocks=$work/$(basename "$document").blocks
    folder=$work/$(basename "$document").models
    mkdir -p "$blocks" "$folder"
    extract "$document" "$blocks"
    wanted=
    for block in "$blocks"/*; do
        [ -e "$block" ] || return
        line=${block##*:}
        kind=${block%:*}
        kind=${kind##*/???.}
        if [ "$kind" = text ]; then
            [ -n "$wanted" ] || continue
            diff -u "$block" "$work/got" > "$work/diff" || fail "$document:$line: the message differs" "$work/diff"
            wanted=
            continue
        fi
        [ -z "$wanted" ] || fail "$document:$line: no text block stands behind the block before" /dev/null
        case $kind in
        *.pnet) cp "$block" "$folder/$kind"; continue ;;
        esac
        cp "$block" "$folder/model.pnet"
        (cd "$folder" && "$pnetc" check model.pnet) > "$work/got" 2>&1
        code=$?
        case $kind in
        pnet)
            models=$((models + 1))
            [ $code = 0 ] && [ ! -s "$work/got" ] || fail "$document:$line: exit code $code" "$work/got"
            ;;
        error | warning)
            messages=$((messages + 1))
            [ $code = $([ "$kind" = error ] && echo 3 || echo 0) ] || fail "$document:$line: exit code $code" "$work/got"
            wanted=yes
            ;;
        *) fail "$document:$line: what is a \`\`\`pnet $kind block?" /dev/null ;;
        esac
    done
    [ -z "$wanted" ] || fail "$document: no text block stands behind the last one" /dev/null
}

for document in README.md docs/*.md; do check_document "$document"; done
echo "$models models, $messages messages"
[ $models -ge 5 ] && [ $messages -ge 8 ] || fail "fewer blocks than the documents have: is the extraction broken?" /dev/null
exit $failed
