# bench/attention.py: says what is missing, and refuses what does not fit, in one sentence.
. tests/cli/common.sh
needs python3

# attention CODE ARGUMENTS...
attention() {
    local want=$1 got=0
    shift
    python3 bench/attention.py "$@" >"$out" 2>"$err" || got=$?
    if [ "$got" = "$want" ]; then pass; else fail "exit code $got instead of $want: $(tail -n 3 "$err")"; fi
}

if ! python3 -c 'import torch' 2>/dev/null; then
    attention 1
    says "attention.py: PyTorch is not there"
    if [ "$(wc -l <"$err")" = 1 ]; then pass; else fail "more than a sentence"; fi
    finish
fi
attention 1 --heads 3
says "attention.py: 3 heads do not divide 64 channels"
attention 1 --points 4095
says "as many points as a scope has"
if ! python3 -c 'import sys, torch; sys.exit(not torch.cuda.is_available())'; then
    attention 1
    says "attention.py: PyTorch sees no GPU"
    finish
fi
attention 0 --points 70000 --scope 1024,4096 --heads 4 --repeat 3
prints "flash"
attention 0 --points 8192 --scope 1024 --heads 2 --repeat 3 --json
valid_json "$out"
python3 - "$out" <<'END' && pass || fail "a backend is off"
import json, sys
rows = json.load(open(sys.argv[1]))["rows"]
ran = [r for r in rows if "refused" not in r]
sys.exit(not ran or any(r["error"] > 1e-2 or r["both_ms"] <= r["forward_ms"] for r in ran))
END
finish
