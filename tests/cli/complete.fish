# What fish offers for command lines: fish --no-config tests/cli/complete.fish COMPLETION; as complete.bash.
source $argv[1]
while read -l line
    echo "= $line"
    complete -C $line | string replace -r '\t.*' ''
end
exit 0
