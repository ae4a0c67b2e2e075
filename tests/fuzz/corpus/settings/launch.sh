# SPDX-License-Identifier: Apache-2.0
# Llama2 70B, in the form of MaxText's launch scripts.
set -e

export EXECUTABLE="train.py" # or train_compile.py
export LENGTH=${LENGTH:-4096}

for ARGUMENT in "$@"; do
    IFS='=' read -r KEY VALUE <<< "$ARGUMENT"
    export "$KEY"="$VALUE"
done
if [ -n "$RUN_NAME" ];
then
    export M_RUN_NAME=$RUN_NAME
fi

export LIBTPU_INIT_ARGS="--xla_tpu_enable_async_collective_fusion=true --xla_enable_async_all_gather=true"

python MaxText/$EXECUTABLE "${CONFIGS:-$PWD/configs}"/base.yml model_name=llama2-70b\
  base_output_directory=$OUTPUT_PATH dataset_path=${DATASET_PATH}\
  remat_policy=save_dot_except_mlpwi per_device_batch_size=4\
  steps=30 max_target_length=$LENGTH profiler=xplane
