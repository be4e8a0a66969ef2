"""Trains the sentiment model of the examples: a binary constituency TreeLSTM on the Stanford Sentiment Treebank.

    pip install -r requirements.txt
    python train.py --sst DIR --out ../data/sentiment.safetensors --vocabulary ../data/sentiment_vocabulary.txt \
        --predictions ../../tests/fixtures/sentiment_test_predictions.txt

DIR holds train.txt, dev.txt and test.txt in PTB format, `(3 (2 word) (4 ...))`, labels 0 (very negative) to 4.

The model is the N-ary TreeLSTM of Tai et al. (2015), equations 9 to 14, with N = 2, hidden size H, embedding size D:

    leaf    i, o = sigmoid(W x + b)    u = tanh(W_u x + b_u)    c = i u    h = o tanh(c)    x = Emb[word]
    inner   i, o = sigmoid(U[0] h_l + U[1] h_r + b)    u = tanh(U_u[0] h_l + U_u[1] h_r + b_u)
            f_k = sigmoid(U_f[k][0] h_l + U_f[k][1] h_r + b_f)    c = i u + f_0 c_l + f_1 c_r    h = o tanh(c)
    every node's logits = W_s h + b_s, for the 5 labels; biases are the same at leaves and inner nodes.

Tensors, in float16: Emb [V,D]; W_i W_o W_u [H,D]; U_i U_o U_u [2,H,H]; U_f [2,2,H,H]; b_i b_o b_u b_f [H]; W_s [5,H];
b_s [5]. Each matrix is [output, input].

Words: line n (from 0) of the vocabulary file is word n; word 0 is <unk>. Look-up: lower-case the letters A to Z of the
token as it stands in the file, nothing else, and find it; <unk> if it is not there.

Predictions at a root, of p = softmax(logits): fine is argmax p (the lowest label of equals), binary is
p3 + p4 > p0 + p1. Binary accuracy leaves out the roots of label 2, as is the custom.

Embeddings start random. Cross-entropy at every node, Adam, dropout, and a running mean of the weights, of which the
best on dev is kept. What is written and evaluated are the rounded weights.
"""

import argparse
import copy
import re
import time
from collections import Counter
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional as F

LABELS = 5


class Trees:
    """The trees of one file as arrays over all their nodes, children before parents, the trees one after the other."""

    def __init__(self, path):
        label, word, left, right, height, end = [], [], [], [], [], []
        for line in path.read_text(encoding="utf-8").splitlines():
            stack = []  # complete subtrees, and between them the labels of those still open
            for opening, text, closing in re.findall(r"\((\d) ?|([^()\s]+)|(\))", line):
                if opening:
                    stack.append((int(opening), []))
                elif text:
                    stack[-1][1].append(text)
                else:
                    value, inside = stack.pop()
                    leaf = isinstance(inside[0], str)
                    label.append(value)
                    word.append(inside[0].translate(LOWER) if leaf else None)
                    left.append(-1 if leaf else inside[0])
                    right.append(-1 if leaf else inside[1])
                    height.append(0 if leaf else 1 + max(height[inside[0]], height[inside[1]]))
                    if stack:
                        stack[-1][1].append(len(label) - 1)
            end.append(len(label))
        self.word = word
        self.label, self.left, self.right, self.height, self.end = map(np.array, (label, left, right, height, end))
        self.begin = np.concatenate([[0], self.end[:-1]])

    def look_up(self, vocabulary):
        self.id = np.array([-1 if w is None else vocabulary.get(w, 0) for w in self.word])

    def __len__(self):
        return len(self.end)


LOWER = {c: c + 32 for c in range(ord("A"), ord("Z") + 1)}


class Batch:
    """Some trees, their nodes renumbered by height: leaves first, then level by level."""

    def __init__(self, trees, which):
        nodes = np.concatenate([np.arange(trees.begin[t], trees.end[t]) for t in which])
        nodes = nodes[np.argsort(trees.height[nodes], kind="stable")]
        place = dict(zip(nodes.tolist(), range(len(nodes))))
        sizes = np.bincount(trees.height[nodes])
        leaves = sizes[0]
        self.words = torch.from_numpy(trees.id[nodes[:leaves]])
        self.labels = torch.from_numpy(trees.label[nodes])
        child = [torch.tensor([place[c] for c in side[nodes[leaves:]]]) for side in (trees.left, trees.right)]
        self.levels = list(zip(*(side.split(sizes[1:].tolist()) for side in child)))
        self.roots = torch.tensor([place[trees.end[t] - 1] for t in which])


class TreeLSTM(nn.Module):
    def __init__(self, words, embedding, hidden, dropout):
        super().__init__()
        self.Emb = nn.Parameter(torch.randn(words, embedding) * 0.1)
        self.W = nn.Parameter(torch.empty(3 * hidden, embedding))  # rows of i, o, u
        self.U = nn.Parameter(torch.empty(5 * hidden, 2 * hidden))  # rows of i, o, u, f_0, f_1; columns of left, right
        self.b = nn.Parameter(torch.zeros(4 * hidden))  # i, o, u, f
        self.W_s = nn.Parameter(torch.zeros(LABELS, hidden))
        self.b_s = nn.Parameter(torch.zeros(LABELS))
        for matrix in (self.W, self.U):
            nn.init.uniform_(matrix, -matrix.shape[1] ** -0.5, matrix.shape[1] ** -0.5)
        with torch.no_grad():
            self.b[3 * hidden:] = 1  # remember at first
        self.hidden = hidden
        self.dropout = dropout

    def forward(self, batch, words=None):
        H = self.hidden
        bias = torch.cat([self.b, self.b[3 * H:]])
        drop = lambda x, p: F.dropout(x, p, self.training)
        x = drop(self.Emb[batch.words if words is None else words], self.dropout[0])
        i, o, u = F.linear(x, self.W, bias[:3 * H]).split(H, 1)
        c = i.sigmoid() * u.tanh()
        h = o.sigmoid() * c.tanh()
        hs, cs = [h], [c]
        H_all, C_all = h, c
        for left, right in batch.levels:
            h_pair = torch.cat([H_all[left], H_all[right]], 1)
            i, o, u, f0, f1 = F.linear(h_pair, self.U, bias).split(H, 1)
            c = i.sigmoid() * drop(u.tanh(), self.dropout[1]) + f0.sigmoid() * C_all[left] + f1.sigmoid() * C_all[right]
            h = o.sigmoid() * c.tanh()
            H_all = torch.cat([H_all, h])
            C_all = torch.cat([C_all, c])
        return F.linear(drop(H_all, self.dropout[2]), self.W_s, self.b_s)
