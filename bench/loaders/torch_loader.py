# SPDX-License-Identifier: BSD-2-Clause
"""torch.utils.data.DataLoader with worker processes and Pillow."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from bench.job import SIZE, Job, epoch_numbers, listing
from bench.loaders.pillow_threads import load


class Photographs(Dataset[tuple[Any, int]]):
    def __init__(self, job: Job) -> None:
        self.job = job
        self.files = listing(job.root)
        self.epoch = 0

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        path, label = self.files[index]
        image = np.empty((SIZE, SIZE, 3), np.uint8)
        load(self.job, path, index, self.epoch, image)
        return torch.from_numpy(image), label


def batches(job: Job) -> Iterator[tuple[Any, Any]]:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    data = Photographs(job)
    loader = DataLoader(
        data,
        batch_size=job.batch,
        shuffle=job.shuffle,
        num_workers=job.threads,
        persistent_workers=job.epochs != 1,
        prefetch_factor=2,
    )
    for _ in epoch_numbers(job.epochs):
        for images, labels in loader:
            yield images.numpy(), labels.tolist()
