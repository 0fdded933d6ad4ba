# The Python of docs/pytorch.md works, as one program, and prints what the page shows; what needs a GPU is checked as far as goes
# without one (tests/cuda/gpu_torch.sh runs it). So is that of docs/python.md, whose own test need not have PyTorch.
page=docs/pytorch.md
least=0
. tests/library/python.sh
prepare() {
    python_package torch
    ln -s "$root/examples" "$work/examples"
    export TORCHINDUCTOR_CACHE_DIR="$work/inductor"
    case $("$python" -c 'import torch; print(torch.__version__)') in
    2.4.*) export TORCHDYNAMO_CAPTURE_DYNAMIC_OUTPUT_SHAPE_OPS=1 ;; # as the page says
    esac
    for one in pytorch python; do echo "$python $root/python/tests/page.py $root/docs/$one.md"; done >"$work/commands"
}
. tests/docs/page.sh
grep 'for a GPU' output
[ "$(grep -c '^[^ ]*: [1-9][0-9]* blocks ran, and [1-9][0-9]* for a GPU are in order$' output)" = 2 ] ||
    { echo 'few blocks found: is the extraction broken?' >&2; status=1; }
finish
