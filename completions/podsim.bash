# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# bash completion of podsim, which says itself what could come (src/cli/complete.h).

_podsim() {
    local line=${COMP_LINE:0:COMP_POINT} word words
    read -ra words <<<"$line"
    [[ $line != *[[:blank:]] ]] || words+=('')
    word=${words[-1]#--*=}
    mapfile -t COMPREPLY < <("${words[0]}" __complete "${words[@]:1}" 2>/dev/null)
    # bash replaces only what follows the last colon.
    if [[ $word == *:* && $COMP_WORDBREAKS == *:* ]]; then
        COMPREPLY=("${COMPREPLY[@]#"${word%:*}:"}")
    fi
}
complete -o default -F _podsim podsim
