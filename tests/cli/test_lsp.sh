# pnetc lsp as a program: exit codes, streams that are none of the protocol, and a rename that pnetc check accepts. What the
# server answers is tested in tests/lsp.
. tests/cli/common.sh

# frame BODY...: each as a message.
frame() {
    local body
    for body in "$@"; do printf 'Content-Length: %d\r\n\r\n%s' "${#body}" "$body"; done
}
initialize='{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{}}}'
shutdown='{"jsonrpc":"2.0","id":2,"method":"shutdown"}'
exit='{"jsonrpc":"2.0","method":"exit"}'

# Bodies of the answers, a line each; whatever is no frame fails.
bodies() {
    tr -d '\r' <"$out" | awk '
        /^Content-Length: [0-9]+$/ && !want { want = substr($0, 17); next }
        want && $0 == "" && !empty { empty = 1; next }
        want && empty {
            print substr($0, 1, want)
            rest = substr($0, want + 1)
            want = empty = 0
            if (rest == "") next
            if (rest !~ /^Content-Length: [0-9]+$/) { print "no frame: " rest; exit }
            want = substr(rest, 17)
            next
        }
        { print "no frame: " $0; exit }
        END { if (want) print "cut" }' >"$work/bodies"
    check 'frames' hides -qE '^no frame|^cut' "$work/bodies"
}

# serve CODE ANSWERS [OPTION...]: pnetc lsp on $work/in ends with that exit code, and has sent so many messages.
serve() {
    local want=$1 answers=$2 got=0
    shift 2
    timeout 60 "$pnetc" lsp "$@" <"$work/in" >"$out" 2>"$err" || got=$?
    if [ $got = "$want" ]; then pass; else fail "exit code $got instead of $want: $(head -c 300 "$err")"; fi
    bodies
    got=$(wc -l <"$work/bodies")
    if [ "$got" = "$answers" ]; then pass; else fail "$got answers instead of $answers: $(head -c 500 "$work/bodies")"; fi
}

# answers CODE: the last message is an error with that code, of no request.
answers() {
    check "error $1: $(tail -n 1 "$work/bodies")" grep -qF "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":$1," "$work/bodies"
}

# ---- sessions ----

frame "$initialize" "$shutdown" "$exit" >"$work/in"
serve 0 2
serve 0 2 --stdio
check 'no words' hides -q . "$err"
frame "$initialize" "$exit" >"$work/in"
serve 1 1
says 'pnetc: the session ended without a shutdown'
frame "$initialize" >"$work/in"
serve 1 1
: >"$work/in"
serve 1 0
frame "$initialize" "$shutdown" >"$work/in"
serve 0 2 # the end of the stream stands for the exit
frame "$shutdown" "$initialize" "$shutdown" "$exit" >"$work/in"
serve 0 3
check 'not initialized' grep -q '"code":-32002' "$work/bodies"
frame "$exit" >"$work/in"
serve 1 0
printf 'content-length:   %d  \r\nContent-Type: application/vscode-jsonrpc; charset=utf-8\r\n\r\n%s' ${#shutdown} "$shutdown" >"$work/in"
serve 1 1
printf 'Content-Length: %d\n\n%s' ${#shutdown} "$shutdown" >"$work/in"
serve 1 1
run 2 lsp model.pnet
says 'pnetc lsp takes no files'
run 2 lsp --port 3
run 0 lsp --help
prints 'docs/editors.md'

# ---- streams that are none ----

# broken: an answer, a sentence and exit code 1.
broken() {
    serve 1 "${1:-1}"
    answers -32700
    says 'pnetc: standard input: this is no stream of the language server protocol'
}
for header in 'Content-Length: 99999999999999999999999999' 'Content-Length: 1073741825' 'Content-Length: -1' 'Content-Length: 0x10' \
    'Content-Length: ten' 'Content-Length:' 'Content-Length: 3 4' 'Content-Lenght: 3' 'Content-Type: text' 'hello' '{"jsonrpc":"2.0"}' \
    "$(printf 'Content-Length: 2\r\nContent-Length: 2')" "$(printf '%02000d' 1)" "$(yes 'A: b' | head -n 100)"; do
    printf '%s\r\n\r\n{}{}{}{}' "$header" >"$work/in"
    broken
done
printf '\r\n\r\n{}' >"$work/in"
broken
printf 'Content-Length: 2' >"$work/in"
broken
printf 'Content-Length: 100\r\n\r\n{}' >"$work/in" # ends early
broken
printf 'Content-Length: 1073741824\r\n\r\n{}' >"$work/in"
broken
{ frame "$initialize"; head -c 3000 /dev/urandom | tr -d '\n'; } >"$work/in"
broken 2
head -c 100000 "$pnetc" >"$work/in"
broken

# A message that is too long is answered and left out; the next one is read.
{
    frame "$initialize"
    printf 'Content-Length: %d\r\n\r\n' $((70 << 20))
    head -c $((70 << 20)) /dev/zero
    frame "$shutdown" "$exit"
} >"$work/in"
serve 0 3
answers -32600
# Brackets nested without end.
nested=$(head -c 100000 /dev/zero | tr '\0' '[')
frame "$nested" "$initialize" "$shutdown" "$exit" >"$work/in"
serve 0 3
answers -32700
# The limits of the compiler hold for texts of the editor.
line='x = 1\n'
text=$(yes "$line" | head -n 800000 | tr -d '\n')
open='{"jsonrpc":"2.0","method":"textDocument/didOpen","params":{"textDocument":{"uri":"file:///a.pnet","version":1,"text":"pnet 1\n'
frame "$initialize" "$open$text\"}}}" "$shutdown" "$exit" >"$work/in"
serve 0 3
check 'too large' grep -q '"message":"the file is too large' "$work/bodies"
# A closed output ends the server.
frame "$initialize" "$shutdown" "$exit" >"$work/in"
code=0
"$pnetc" lsp <"$work/in" 2>"$err" >/dev/full || code=$?
check "a full disk: $code" test $code = 1
says 'standard output: cannot write'

# ---- a rename, from the answer to the file ----

cat >"$work/model.pnet" <<'END'
pnet 1
# Größe 🚀 der Zelle
param v = 5cm  ## größer 🚀
input cloud { xyz : position }
net n(p: cloud) { return ones(grid(p, v)) -> linear(3) }  # v 🚀
y = n(cloud)
END
text=$(sed ':a;N;$!ba;s/\n/\\n/g' "$work/model.pnet")
uri="file://$work/model.pnet"
rename='{"jsonrpc":"2.0","id":3,"method":"textDocument/rename","params":{"textDocument":{"uri":"'$uri'"},"position":{"line":4,"character":38},"newName":"cell"}}'
open='{"jsonrpc":"2.0","method":"textDocument/didOpen","params":{"textDocument":{"uri":"'$uri'","version":1,"text":"'$text'\n"}}}'
frame "$initialize" "$open" "$rename" "$shutdown" "$exit" >"$work/in"
serve 0 4
grep -o '"start":{"line":[0-9]*,"character":[0-9]*},"end":{"line":[0-9]*,"character":[0-9]*}},"newText":"cell"' "$work/bodies" |
    sed 's/[^0-9]\{1,\}/ /g' | sort -rn >"$work/edits"
check 'two places' test "$(wc -l <"$work/edits")" = 2
while read -r line from _ to; do # these lines are ASCII up to there
    sed -i "$((line + 1))s/^\(.\{$from\}\).\{$((to - from))\}/\1cell/" "$work/model.pnet"
done <"$work/edits"
check 'renamed' grep -qF 'grid(p, cell)' "$work/model.pnet"
run 0 check "$work/model.pnet"

finish
