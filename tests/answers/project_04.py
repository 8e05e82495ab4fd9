# %% foretold wild form=1 first=0 all=0
def foretold():
    return {"largest part": "all of it", "first": 900, "all": 900}


# %% foretold empty form=0 first=0 all=0
def foretold():
    return {"largest part": " ", "first": 900, "all": 900}


# %% epoch_first as_is check=2 race=0
def epoch_first(*inputs):
    return epoch_slow(*inputs)


# %% epoch as_is check=4 hidden=3 race=0
def epoch(*inputs):
    return epoch_slow(*inputs)


# %% epoch features_of_an_image_at_once check=4 hidden=3 race=3..9
def epoch(pictures, labels, draws, side, batch_size):
    class Mended(Pictures):
        def colours(self, image):
            levels = torch.linspace(-3, 3, 16, dtype=image.dtype)
            near = 1 - (image.clamp(-3, 3)[:, None] - levels[:, None, None]).abs() / 0.4
            return near.clamp_(min=0).mean(dim=(2, 3)).flatten().tolist()

        def edges(self, image):
            down, right = (image.diff(dim=dim).abs().mean(dim=(1, 2)).tolist() for dim in (1, 2))
            return down + right

        def contrast(self, image):
            side = self.side // 8 * 8
            tiles = image[:, :side, :side].unflatten(1, (-1, 8)).unflatten(3, (-1, 8))
            spread = tiles.std(dim=(2, 4), correction=0).flatten(1)
            return torch.stack([spread.mean(dim=1), spread.amax(dim=1)], dim=1).flatten().tolist()

    data = Mended(pictures, labels, draws, side)
    data.mean_and_std = data.statistics()
    batches = []
    for start in range(0, len(data), batch_size):
        samples = [data[index] for index in range(start, min(start + batch_size, len(data)))]
        images, features, targets = zip(*samples, strict=True)
        batches.append((torch.stack(images), torch.tensor(features), torch.tensor(targets)))
    return batches


# %% epoch not_mirrored check=0 hidden=0 race=0
def epoch(pictures, labels, draws, side, batch_size):
    return epoch_slow(pictures, labels, draws * torch.tensor([1, 1, 1, 0]), side, batch_size)


# %% epoch first_statistics_only check=0 hidden=0 race=0
def epoch(pictures, labels, draws, side, batch_size):
    class Mended(Pictures):
        def statistics(self):
            pixels = self.in_colour(self.pictures[0]).reshape(-1, 3)
            return torch.from_numpy(pixels.mean(axis=0)), torch.from_numpy(pixels.std(axis=0))

    data = Mended(pictures, labels, draws, side)
    data.mean_and_std = data.statistics()
    return [torch.utils.data.default_collate([data[i] for i in range(len(data))])]
