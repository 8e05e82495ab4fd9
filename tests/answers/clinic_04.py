# %% diagnosis nothing_wrong form=1 lines=4 causes=3 gains=1
def diagnosis():
    return dict.fromkeys(PIECES, ("", "nothing", 1))


# %% diagnosis one_cause form=1 lines=0 causes=1.5 gains=1.5..2
def diagnosis():
    last = {
        "backtest": "return torch.stack(table)",
        "train_epoch": "loss = F.cross_entropy(logits, targets)",
        "activity_batches": "return len(self.starts)",
        "outlier_scores": "counts = labels.bincount(minlength=10)",
        "confusion_report": "hits = table.diagonal()",
        "tune_head": "optimiser.step()",
        "training_crops": "top, left = corner",
        "clip_loss": "views = []",
        "recall_at_k": "found += hits.sum()",
        "predict": "scores = x @ weights[-1]",
    }
    return {name: (line, "one by one", 10) for name, line in last.items()}


# %% diagnosis loops form=1 lines=2 causes=1.5 gains=2..2.5
def diagnosis():
    loops = {
        "backtest": "for start, stop in windows:",
        "train_epoch": "for rows in order.split(batch_size):",
        "activity_batches": "return [(windows.transpose(1, 2), labels) for windows, labels in loader]",
        "outlier_scores": "sums = torch.zeros(10).index_add(0, labels, distances)",
        "confusion_report": "for truth, guess in zip(labels, predicted, strict=True):",
        "tune_head": "for images, labels in batches:",
        "training_crops": "for i, (picture, corner) in enumerate(zip(pictures, corners, strict=True)):",
        "clip_loss": "for one in (logits, logits.T):",
        "recall_at_k": "for queries, ids in batches:",
        "predict": "for samples, theirs in batches:",
    }
    return {name: (line, "one by one", 3) for name, line in loops.items()}


# %% diagnosis guesses form=1 lines=2 causes=1.5 gains=2..3
def diagnosis():
    return {
        "backtest": ("error = F.mse_loss(signal, came)", "float64", 2),
        "train_epoch": ("total += loss.detach() * len(rows)", "graph", 5),
        "activity_batches": ("self.activities = activities", "copied", 20),
        "outlier_scores": ("counts = labels.bincount(minlength=10)", "lists", 3),
        "confusion_report": ("said = table.sum(dim=0)", "repeated", 2),
        "tune_head": ("loss.backward()", "unused", 1.5),
        "training_crops": ("mean = mean[:, None, None]", "transfers", 4),
        "clip_loss": ("scale = torch.tensor(np.log(1 / 0.07)).exp()", "float64", 2),
        "recall_at_k": ("nearest = nearness.topk(k, dim=1).indices", "workers", 3),
        "predict": ("numbers = torch.cat([numbers, theirs])", "growing", 3),
    }


# %% diagnosis half form=1 lines=10 causes=7.5 gains=2.5
def diagnosis():
    return dict.fromkeys(PIECES, ("x", "workers", 1000)) | {
        "backtest": ("days = torch.arange(start, stop)", "copied", 3),
        "train_epoch": ("", "nothing", 1),
        "activity_batches": ("return torch.tensor(window.tolist()),  int(activity)", "lists", 17),
        "outlier_scores": ("squares = (centred @ precision * centred).sum(dim=1)", "float64", 2.5),
        "confusion_report": ("table[truth, guess] += 1", "one by one", 10),
    }


# %% diagnosis tenfold form=1 lines=20 causes=15 gains=1
def diagnosis():
    return {
        "backtest": ("days = torch.arange(start, stop)", "copied", 28),
        "train_epoch": ("", "nothing", 1),
        "activity_batches": ("return torch.tensor(window.tolist()), int(activity)", "lists", 125),
        "outlier_scores": ("precision = torch.from_numpy(precision)", "float64", 22),
        "confusion_report": ("for truth, guess in zip(labels, predicted, strict=True):", "one by one", 145),
        "tune_head": ("self.weights = nn.ParameterList(weights)", "graph", 22),
        "training_crops": ("batch[i] = image[:, top : top + side, left : left + side]", "unused", 103),
        "clip_loss": ("", "nothing", 1),
        "recall_at_k": ("candidates = F.normalize(gallery @ projection, dim=1)", "repeated", 59),
        "predict": ("probabilities = torch.cat([probabilities, scores.softmax(dim=1)])", "growing", 31),
    }


# %% diagnosis not_readable form=0 lines=0 causes=0 gains=0
def diagnosis():
    return {"backtest": "features[days]", "train_epoch": None}


# %% backtest_mended as_is check=0.25 hidden=0
def backtest_mended(*inputs):
    return backtest(*inputs)


# %% backtest_mended wrong check=0 hidden=0
def backtest_mended(*inputs):
    return 2.0


# %% train_epoch_mended as_is check=0.25 hidden=0.75
def train_epoch_mended(*inputs):
    return train_epoch(*inputs)


# %% train_epoch_mended wrong check=0 hidden=0
def train_epoch_mended(*inputs):
    return 2.0


# %% activity_batches_mended as_is check=0.25 hidden=0
def activity_batches_mended(*inputs):
    return activity_batches(*inputs)


# %% activity_batches_mended wrong check=0 hidden=0
def activity_batches_mended(*inputs):
    return 2.0


# %% outlier_scores_mended as_is check=0.25 hidden=0
def outlier_scores_mended(*inputs):
    return outlier_scores(*inputs)


# %% outlier_scores_mended wrong check=0 hidden=0
def outlier_scores_mended(*inputs):
    return 2.0


# %% confusion_report_mended as_is check=0.25 hidden=0
def confusion_report_mended(*inputs):
    return confusion_report(*inputs)


# %% confusion_report_mended wrong check=0 hidden=0
def confusion_report_mended(*inputs):
    return 2.0


# %% tune_head_mended as_is check=0.25 hidden=0
def tune_head_mended(*inputs):
    return tune_head(*inputs)


# %% tune_head_mended wrong check=0 hidden=0
def tune_head_mended(*inputs):
    return 2.0


# %% training_crops_mended as_is check=0.25 hidden=0
def training_crops_mended(*inputs):
    return training_crops(*inputs)


# %% training_crops_mended wrong check=0 hidden=0
def training_crops_mended(*inputs):
    return 2.0


# %% clip_loss_mended as_is check=0.25 hidden=0.75
def clip_loss_mended(*inputs):
    return clip_loss(*inputs)


# %% clip_loss_mended wrong check=0 hidden=0
def clip_loss_mended(*inputs):
    return 2.0


# %% recall_at_k_mended as_is check=0.25 hidden=0
def recall_at_k_mended(*inputs):
    return recall_at_k(*inputs)


# %% recall_at_k_mended wrong check=0 hidden=0
def recall_at_k_mended(*inputs):
    return 2.0


# %% predict_mended as_is check=0.25 hidden=0
def predict_mended(*inputs):
    return predict(*inputs)


# %% predict_mended wrong check=0 hidden=0
def predict_mended(*inputs):
    return 2.0
