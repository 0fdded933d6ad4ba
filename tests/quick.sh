#!/bin/sh
# Builds what changed, without the CUDA backend, in build/quick, and runs the tests that a change touches, within some three
# minutes: the format and the analyzer on files that differ from the main branch (or from the commit that is named), all
# tests but the slow ones, and slow ones of the areas that the change is in.
# sh tests/quick.sh [COMMIT]
set -eu
cd "$(dirname "$0")/.."
sh setup.sh --packages ccache
cmake --preset quick -G Ninja >/dev/null
cmake --build --preset quick
base=$(git merge-base HEAD "${1:-main}")
[ "${1:-}" ] || [ "$base" != "$(git rev-parse HEAD)" ] || base=HEAD
changed=$({ git diff --name-only --diff-filter=d "$base"; git ls-files --others --exclude-standard; } | sort -u)
sources=$(printf '%s\n' "$changed" | grep -E '\.(c|h|cu|cuh)$' || true)
status=0
# a header is checked in the files that include it
# shellcheck disable=SC2086
[ -z "$sources" ] || sh tests/lint.sh quick $sources || status=1
slow=
touches() { # pattern of changed files, slow tests
    printf '%s\n' "$changed" | grep -qE "$1" && slow="${slow:+$slow|}$2" || true
}
touches '^kernels/cpu/conv' 'test_conv|test_conv_algo'
touches '^runtime/run/' 'test_concurrent|test_peak'
touches '^(runtime/(run|geo|plan)/|kernels/geometry|kernels/matches|kernels/cpu/geometry)' 'test_slots|test_peak'
touches '^runtime/(train|base)/' 'test_resume'
touches '^runtime/(base|data|exchange|train)/' 'test_many'
touches '^runtime/synth/' 'test_synth_rooms'
touches '^docs/training|^models/' 'test_commands'
touches '^(lang|compiler)/|^tests/lang/' 'test_lsp_properties'
touches '^docs/registration|^runtime/register' 'test_registration|test_table'
touches '^docs/completion|^models/' 'test_completion_page'
touches '^docs/adding|^runtime/plan/' 'test_add_'
touches '^bench/' 'test_bench'
printf '%s\n' "$changed" | grep -qE '\.cuh?$' && echo 'CUDA sources changed: sh setup.sh compiles them'
ctest --preset quick --label-exclude 'slow|data|gpu' -j2 || status=1
[ -z "$slow" ] || ctest --preset quick --label-regex slow --tests-regex "^($slow)" -j2 || status=1
exit $status
