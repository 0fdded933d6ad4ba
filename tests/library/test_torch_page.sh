# The Python of docs/pytorch.md works, as one program, and prints what the page shows.
page=docs/pytorch.md
least=0
. tests/library/python.sh
prepare() {
    python_package torch
    ln -s "$root/examples" "$work/examples"
    export TORCHINDUCTOR_CACHE_DIR="$work/inductor"
    awk '/^```python$/ { inside = 1; next } /^```/ { inside = 0 } inside' "$root/$page" >"$work/page.py"
    case $("$python" -c 'import torch; print(torch.__version__)') in
    2.4.*) sed -i 's/^import torch$/import torch._dynamo; torch._dynamo.config.capture_dynamic_output_shape_ops = True/' "$work/page.py" ;;
    esac
    echo "$python page.py" >"$work/commands"
}
. tests/docs/page.sh
[ "$(grep -c 'spconv\.\|torch\.' page.py)" -gt 15 ] || { echo 'little Python found: is the extraction broken?' >&2; status=1; }
finish
