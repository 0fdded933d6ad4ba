# What zsh offers for command lines: zsh -f tests/cli/complete.zsh FOLDER, which holds _pnetc; as complete.bash. A shell on a
# pseudo-terminal completes, as for a user.
zmodload zsh/zpty || exit 1
zpty shell zsh -f -i
zpty -w shell "PS1=; unsetopt zle_bracketed_paste beep; fpath=(${(q)1} \$fpath); cd ${(q)PWD}"
zpty -w shell 'autoload -Uz compinit; compinit -u -D; stty 1000000 -echo 2>/dev/null'
# every candidate goes through compadd, which is asked which ones fit what was typed
zpty -w shell 'compadd() {
    local -a found
    case " $* " in *" -"[AOD]" "*) builtin compadd "$@"; return ;; esac
    builtin compadd -A found "$@"
    local one
    for one in $found; do print -r -- "<${(Q)one}>"; done
    builtin compadd "$@"
}'
zpty -w shell 'zstyle ":completion:*" menu no; unsetopt auto_list auto_menu always_last_prompt; setopt no_list_ambiguous'
zpty -w shell 'finish() { print -r -- "<<>>"; zle kill-whole-line }; offer() { zle complete-word; finish }'
zpty -w shell 'zle -N offer; bindkey "^T" offer; print -r -- "<<ready>>"'
read_to() { # TEXT: what the shell prints up to it
    local line
    heard=()
    while zpty -r shell line; do
        line=${line//$'\r'/}
        heard+=("${line%$'\n'}")
        [[ $line == *"$1"* ]] && return 0
    done
    return 1
}
read_to $'<<ready>>\n' || exit 1
while IFS= read -r line; do
    zpty -n -w shell "$line"$'\x14'
    read_to '<<>>' || exit 1
    print -r -- "= $line"
    print -rl -- ${heard} | grep -o '<[^<>]*>' | sed 's/^<//; s/>$//' | grep -v '^$' | sort -u
done
zpty -d shell
