# tests/venv.sh, with a Python that only notes what it is told: runs at the same time make one environment, and each gives it when it
# is whole; later runs take it.
set -u
work=$(mktemp -d "${TMPDIR:-/tmp}/pnet venv-XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin" "$work/cache"
cat >"$work/bin/python3" <<'END'
#!/bin/sh
case "$*" in
'-m venv '*) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
'-m pip install '*) sleep 1 && echo installed >>"$NOTED" && touch "$(dirname "$0")/../whole" ;;
-c*) ;;
*) exit 1 ;;
esac
END
chmod +x "$work/bin/python3"
export PATH="$work/bin:$PATH" XDG_CACHE_HOME="$work/cache" NOTED="$work/noted"
status=0
for run in 1 2 3 4; do
    { python=$(sh tests/venv.sh wheel 2>/dev/null) && [ -e "${python%/bin/python}/whole" ] && touch "$work/good$run"; } &
done
wait
for run in 1 2 3 4; do [ -e "$work/good$run" ] || { echo "run $run gave no whole environment"; status=1; }; done
[ "$(sh tests/venv.sh wheel)" = "$work/cache/pnet/wheel/bin/python" ] || { echo 'a later run gave another one'; status=1; }
[ "$(wc -l <"$work/noted")" = 1 ] || { echo "packages were installed $(wc -l <"$work/noted") times"; status=1; }
exit $status
