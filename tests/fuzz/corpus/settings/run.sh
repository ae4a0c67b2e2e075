#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
export LIBTPU_INIT_ARGS="--xla_tpu_scoped_vmem_limit_kib=98304 --xla_tpu_decompose_all_gather_einsum=true"
# 64 chips
python3 -m maxtext.trainers.pre_train.train configs/base.yml model_name=llama3.1-70b \
  per_device_batch_size=2 max_target_length=8192 ici_fsdp_parallelism=-1 remat_policy=custom \
  decoder_layer_input=offload query_proj='device' mlp_activations=['silu', 'linear'] \
  weight_quantization_calibration_method="fixed,-224,224" quantization=fp8_full capacity_factor=1.25
