"""Trains the sentiment model of the examples: a binary constituency TreeLSTM on the Stanford Sentiment Treebank.

    pip install -r requirements.txt
    python train.py --sst DIR

DIR holds train.txt, dev.txt and test.txt in PTB format, `(3 (2 word) (4 ...))`, labels 0 (very negative) to 4. Written
are the weights, the vocabulary and the predictions for test.txt; `--help` says where. No GPU is needed.

The model is the N-ary TreeLSTM of Tai et al. (2015), equations 9 to 14, with N = 2, hidden size H, embedding size D:

    leaf    i, o = sigmoid(W x + b)    u = tanh(W_u x + b_u)    c = i u    h = o tanh(c)    x = Emb[word]
    inner   i, o = sigmoid(U[0] h_l + U[1] h_r + b)    u = tanh(U_u[0] h_l + U_u[1] h_r + b_u)
            f_k = sigmoid(U_f[k][0] h_l + U_f[k][1] h_r + b_f)    c = i u + f_0 c_l + f_1 c_r    h = o tanh(c)
    every node's logits = W_s h + b_s, one for each label; biases are the same at leaves and inner nodes.

Tensors, in float16, matrices [output, input]: Emb [V,D]; W_i W_o W_u [H,D]; U_i U_o U_u [2,H,H]; U_f [2,2,H,H];
b_i b_o b_u b_f [H]; W_s [5,H]; b_s [5].

Words: line n (from 0) of the vocabulary file is word n; word 0 is <unk>. Look-up: lower-case the letters A to Z of the
token as it stands in the tree, nothing else, and find it; <unk> if it is not there.

Predictions at a root, from p = softmax(logits): fine is argmax p, binary (1 is positive) is p3 + p4 > p0 + p1. Binary
accuracy leaves out the roots of label 2, as is the custom.

Training: embeddings start random; cross-entropy at every node; Adam with a learning rate that falls to zero; dropout;
words become <unk> at random, rare ones more often. Kept is the running mean of the weights at the epoch whose mean does
best on dev. The accuracies are those of the weights as written: rounded to float16, computed with in float32.
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
UNKNOWN = "<unk>"
LOWER = {c: c + 32 for c in range(ord("A"), ord("Z") + 1)}


class Trees:
    """The trees of a file as arrays over their nodes, children before parents, one tree after the other."""

    def __init__(self, path):
        nodes, ends = [], []  # label, word, left, right, height; a tree's last node, its root, is before its end
        for line in path.read_text(encoding="utf-8").split("\n"):
            if not line.strip():
                continue
            stack = [[]]  # of each open subtree its label, and then a word or the numbers of its children
            for label, word, close in re.findall(r"\((\d)|([^()\s]+)|(\))", line, re.ASCII):
                if label:
                    stack.append([int(label)])
                elif word:
                    stack[-1].append(word.translate(LOWER))
                else:
                    label, *inside = stack.pop()
                    if len(inside) == 1:
                        nodes.append((label, inside[0], -1, -1, 0))
                    else:
                        left, right = inside
                        nodes.append((label, None, left, right, 1 + max(nodes[left][4], nodes[right][4])))
                    stack[-1].append(len(nodes) - 1)
            ends.append(len(nodes))
        label, self.word, left, right, height = zip(*nodes)
        self.label, self.left, self.right, self.height = map(np.array, (label, left, right, height))
        self.end = np.array(ends)
        self.begin = np.array([0] + ends[:-1])

    def look_up(self, vocabulary):
        self.word_id = np.array([-1 if word is None else vocabulary.get(word, 0) for word in self.word])

    def batches(self, order, size):
        return (Batch(self, order[k : k + size]) for k in range(0, len(order), size))


class Batch:
    """Some of the trees, their nodes renumbered by height: all leaves, then level by level."""

    def __init__(self, trees, which):
        nodes = np.concatenate([np.arange(trees.begin[t], trees.end[t]) for t in which])
        nodes = nodes[np.argsort(trees.height[nodes], kind="stable")]
        number = dict(zip(nodes.tolist(), range(len(nodes))))
        leaves, *levels = np.bincount(trees.height[nodes]).tolist()
        self.words = torch.from_numpy(trees.word_id[nodes[:leaves]])
        self.labels = torch.from_numpy(trees.label[nodes])
        self.roots = torch.tensor([number[trees.end[t] - 1] for t in which])
        children = [torch.tensor([number[c] for c in side[nodes[leaves:]]]) for side in (trees.left, trees.right)]
        self.levels = list(zip(*(side.split(levels) for side in children)))  # of each, the left and the right children


class TreeLSTM(nn.Module):
    """The gates' matrices are stacked, so that a level takes one product."""

    def __init__(self, words, embedding, hidden, dropout):
        super().__init__()
        self.hidden, self.dropout = hidden, dropout
        self.Emb = nn.Parameter(torch.randn(words, embedding) * 0.1)
        self.W = nn.Linear(embedding, 3 * hidden, bias=False)  # rows of i, o, u
        self.U = nn.Linear(2 * hidden, 5 * hidden, bias=False)  # rows of i, o, u, f_0, f_1; columns of left, right
        self.b = nn.Parameter(torch.cat([torch.zeros(3 * hidden), torch.ones(hidden)]))  # of i, o, u, f
        self.classify = nn.Linear(hidden, LABELS)

    def forward(self, batch, words):
        """Logits [node, label] of all nodes, of the leaves with `words`."""
        H = self.hidden
        input_dropout, update_dropout, output_dropout = self.dropout
        x = F.dropout(self.Emb[words], input_dropout, self.training)
        i, o, u = (self.W(x) + self.b[: 3 * H]).split(H, 1)
        c = i.sigmoid() * u.tanh()
        h = o.sigmoid() * c.tanh()
        bias = torch.cat([self.b, self.b[3 * H :]])  # both forget gates have the same
        for left, right in batch.levels:
            i, o, u, f_0, f_1 = (self.U(torch.cat([h[left], h[right]], 1)) + bias).split(H, 1)
            update = F.dropout(u.tanh(), update_dropout, self.training)
            level_c = i.sigmoid() * update + f_0.sigmoid() * c[left] + f_1.sigmoid() * c[right]
            level_h = o.sigmoid() * level_c.tanh()
            c, h = torch.cat([c, level_c]), torch.cat([h, level_h])
        return self.classify(F.dropout(h, output_dropout, self.training))

    def tensors(self):
        """The weights under the names and in the shapes that the head of this file gives."""
        H = self.hidden
        result = {"Emb": self.Emb, "W_s": self.classify.weight, "b_s": self.classify.bias}
        result |= zip(("W_i", "W_o", "W_u"), self.W.weight.split(H))
        U = self.U.weight.view(5, H, 2, H).transpose(1, 2)  # [gate, child, H, H]
        result |= {"U_i": U[0], "U_o": U[1], "U_u": U[2], "U_f": U[3:]}
        result |= zip(("b_i", "b_o", "b_u", "b_f"), self.b.split(H))
        return {name: value.detach().clone(memory_format=torch.contiguous_format) for name, value in result.items()}


class Evaluation:
    """What a model predicts for the roots of all trees, and how much of it is right."""

    @torch.no_grad()
    def __init__(self, model, trees):
        roots = [model.eval()(b, b.words)[b.roots] for b in trees.batches(np.arange(len(trees.end)), 200)]
        self.p = torch.cat(roots).softmax(1)
        self.polarity = self.p[:, 3] + self.p[:, 4] - self.p[:, 0] - self.p[:, 1]
        self.fine, self.binary = self.p.argmax(1), self.polarity > 0
        label = torch.from_numpy(trees.label[trees.end - 1])
        polar = label != 2
        self.fine_right, self.fine_of = (self.fine == label).sum().item(), len(label)
        self.binary_right = (self.binary == (label > 2))[polar].sum().item()
        self.binary_of = polar.sum().item()

    def margin(self):
        """How far p is from another fine and from another binary prediction, at the root where it is nearest."""
        best = self.p.topk(2).values
        return (best[:, 0] - best[:, 1]).min().item(), self.polarity.abs().min().item()

    def __str__(self):
        return (
            f"fine {self.fine_right} of {self.fine_of} ({self.fine_right / self.fine_of:.2%}), "
            f"binary {self.binary_right} of {self.binary_of} ({self.binary_right / self.binary_of:.2%})"
        )


def train(model, trees, dev, counts, options):
    """Trains the model and returns the running mean of its weights at the best epoch."""
    rng = np.random.default_rng(options.seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=options.rate, betas=(0.9, 0.99))
    steps = options.epochs * -(-len(trees.end) // options.batch)
    schedule = lambda n: min(1, (n + 1) / 100) * (1 - n / steps)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, schedule)
    mean, best, best_score, step, start = copy.deepcopy(model), None, 0, 0, time.time()
    for epoch in range(1, options.epochs + 1):
        model.train()
        for batch in trees.batches(rng.permutation(len(trees.end)), options.batch):
            unknown = torch.rand(len(batch.words)) < 0.25 / (0.25 + counts[batch.words])
            loss = F.cross_entropy(model(batch, batch.words.masked_fill(unknown, 0)), batch.labels)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            scheduler.step()
            step += 1
            with torch.no_grad():
                for m, p in zip(mean.parameters(), model.parameters()):
                    m.lerp_(p, max(1 - options.mean, 1 / (step + 1)))
        result = Evaluation(mean, dev)
        print(f"epoch {epoch}: {time.time() - start:.0f} s, loss {loss.item():.4f}, dev {result}", flush=True)
        if (score := result.binary_right / result.binary_of + result.fine_right / result.fine_of) > best_score:
            best, best_score = copy.deepcopy(mean), score
    return best


def main():
    repository = Path(__file__).parents[2]
    data, fixtures = repository / "examples/data", repository / "tests/fixtures"
    parser = argparse.ArgumentParser(formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--sst", type=Path, required=True, help="folder of train.txt, dev.txt and test.txt")
    parser.add_argument("--out", type=Path, default=data / "sentiment.safetensors")
    parser.add_argument("--vocabulary", type=Path, default=data / "sentiment_vocabulary.txt")
    parser.add_argument("--predictions", type=Path, default=fixtures / "sentiment_test_predictions.txt")
    parser.add_argument("--embedding", type=int, default=96)
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--batch", type=int, default=64, help="trees in a step")
    parser.add_argument("--rate", type=float, default=2e-3, help="learning rate")
    parser.add_argument("--dropout", type=float, nargs=3, default=(0.6, 0.3, 0.5), help="of x, u, and h as classified")
    parser.add_argument("--mean", type=float, default=0.998, help="decay of the running mean of the weights, by step")
    parser.add_argument("--seed", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    torch.set_num_threads(options.threads)

    trees, dev, test = (Trees(options.sst / f"{split}.txt") for split in ("train", "dev", "test"))
    occurrences = Counter(word for word in trees.word if word is not None).most_common()
    words = [UNKNOWN] + [word for word, _ in occurrences]
    counts = torch.tensor([torch.inf] + [count for _, count in occurrences])
    for split in (trees, dev, test):
        split.look_up({word: n for n, word in enumerate(words)})

    model = TreeLSTM(len(words), options.embedding, options.hidden, options.dropout)
    model = train(model, trees, dev, counts, options).half().float()
    on_dev, on_test, exact = Evaluation(model, dev), Evaluation(model, test), Evaluation(model.double(), test)
    assert on_test.fine.equal(exact.fine) and on_test.binary.equal(exact.binary), "a prediction hangs on rounding"
    print(f"dev: {on_dev}\ntest: {on_test}\ntest in float64: the same predictions")
    print("smallest margins of p: fine {:.2e}, binary {:.2e}; ".format(*exact.margin()), end="")
    print(f"greatest difference of p between float32 and float64: {(on_test.p - exact.p).abs().max().item():.1e}")

    save_file({name: value.half() for name, value in model.tensors().items()}, options.out)
    options.vocabulary.write_text("".join(word + "\n" for word in words), encoding="utf-8")
    lines = [f"# test: {on_test}; dev: {on_dev}. Below, of each tree of test.txt: fine, binary."]
    lines += [f"{fine} {binary:d}" for fine, binary in zip(on_test.fine.tolist(), on_test.binary.tolist())]
    options.predictions.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
