#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# 22B on v4, as AI-Hypercomputer/maxtext src/maxtext/configs/tpu/v4/22B.sh runs it
export LIBTPU_INIT_ARGS="--xla_tpu_enable_async_all_gather=true"
python3 -m MaxText.train MaxText/configs/base.yml run_name="a run" steps=30 \
    per_device_batch_size=13 base_emb_dim=6144 base_num_query_heads=24 base_num_kv_heads=24 \
    base_mlp_dim=24576 base_num_decoder_layers=48 head_dim=256 mlp_activations=['relu'] \
    use_tokamax_splash=True use_iota_embed=True sa_block_q=2048 sa_block_kv=2048 sa_block_q_dkv=2048 sa_block_kv_dkv=2048 # [64 chips]
