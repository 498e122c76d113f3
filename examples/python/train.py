#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Trains a small classifier on a folder of images, with one folder for each class.

    python train.py FOLDER [--epochs 3]

The model is a softmax regression in NumPy on images pooled to 8 x 8 pixels: small enough to
read, and enough to see that the batches are what they should be: the loss falls.
"""

import argparse
import time

import numpy as np

from stoker import Pipeline, PipelineBuilder, ops, source


def make_pipeline(folder: source.Directory, batch: int, threads: int) -> Pipeline:
    return (
        PipelineBuilder()
        .add_source(folder, continuous=True)  # each `for` is one epoch
        .pipe(ops.read(), concurrency=16)
        .pipe(ops.decode_image(224, 224, crop="random_resized", flip=0.5), on_error="skip")
        .batch(batch)
        .add_sink(3)
        .build(num_threads=threads)
    )


class Model:
    def __init__(self, num_classes: int) -> None:
        self.weights: np.ndarray = np.zeros((8 * 8 * 3 + 1, num_classes), np.float32)
        self.velocity: np.ndarray = np.zeros_like(self.weights)

    @staticmethod
    def features(image: np.ndarray) -> np.ndarray:
        """(n, 224, 224, 3) uint8 to (n, 193): means of 8 x 8 cells of every 4th pixel, and 1."""
        n = len(image)
        cells = image[:, ::4, ::4].reshape(n, 8, 7, 8, 7, 3).mean((2, 4), dtype=np.float32)
        return np.concatenate([cells.reshape(n, -1) / 64 - 2, np.ones((n, 1), np.float32)], axis=1)

    def step(self, image: np.ndarray, label: np.ndarray, rate: float = 0.02) -> tuple[float, int]:
        """One step of gradient descent; the loss, and how many were right before it."""
        x, rows = self.features(image), np.arange(len(label))
        scores = x @ self.weights
        scores -= scores.max(axis=1, keepdims=True)
        p = np.exp(scores)
        p /= p.sum(axis=1, keepdims=True)
        loss = -np.log(p[rows, label] + 1e-9).mean()
        right = int((p.argmax(axis=1) == label).sum())
        p[rows, label] -= 1
        self.velocity = 0.9 * self.velocity - rate * (x.T @ p) / len(label)
        self.weights += self.velocity
        return float(loss), right


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()

    folder = source.Directory(args.folder, labels="dir", shuffle=True, seed=0)
    classes = folder.classes()
    print(f"{len(classes)} classes: {', '.join(classes)}")
    model = Model(len(classes))
    pipeline = make_pipeline(folder, args.batch, args.threads)
    with pipeline.auto_stop():
        for epoch in range(args.epochs):
            start, images, right, loss = time.perf_counter(), 0, 0, 0.0
            for batch in pipeline:
                image, label = np.from_dlpack(batch.image), np.from_dlpack(batch.label)
                batch_loss, batch_right = model.step(image, label)
                images += len(label)
                right += batch_right
                loss += batch_loss * len(label)
            seconds = time.perf_counter() - start
            n = max(images, 1)
            print(
                f"epoch {epoch}: {images} images, loss {loss / n:.3f}, {100 * right / n:.0f} % right, "
                f"{images / seconds:.0f} images/s"
            )
        print(f"verdict: {pipeline.stats()['verdict']}")


if __name__ == "__main__":
    main()
