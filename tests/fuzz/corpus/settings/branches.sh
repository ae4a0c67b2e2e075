# SPDX-License-Identifier: Apache-2.0
B=${1:-${B:-4}}
if [[ "$B" == "4" ]]; then
  bash -c "python3 t.py base.yml a=$B \
 b='c d'"
elif [ -z "$X" ]; then
  cat <<END
END
else
  python3 t.py base.yml a=${B%x} $(date) `x` >log 2>&1
fi
