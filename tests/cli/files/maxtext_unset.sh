# SPDX-License-Identifier: Apache-2.0
python3 train.py configs/base.yml model_name=llama2-7b run_name=$NAME\
    per_device_batch_size=$BATCH
