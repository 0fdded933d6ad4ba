# What bash offers for command lines: bash tests/cli/complete.bash COMPLETION; a command line a line of standard input. Prints for each
# a line "= LINE" and then a candidate a line.
# shellcheck source=/dev/null
. "$1"
compopt() { :; } # no completion is under way that it could change
offer() { # LINE
    local word='' c i
    # words as readline breaks them: = is a word of its own
    COMP_WORDS=()
    for ((i = 0; i < ${#1}; i++)); do
        c=${1:i:1}
        case $c in
        ' ') [ -z "$word" ] || COMP_WORDS+=("$word") ;;
        =) COMP_WORDS+=(${word:+"$word"} "=") ;;
        *) word+=$c && continue ;;
        esac
        word=
    done
    if [ "$word" ] || [ "${1: -1}" = ' ' ]; then COMP_WORDS+=("$word"); fi
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    _pnetc
    printf '%s\n' "= $1" "${COMPREPLY[@]}"
}
while IFS= read -r line; do offer "$line"; done
