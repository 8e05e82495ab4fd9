# %% foretold wild form=1 first=0 all=0
def foretold():
    return {"largest part": "all of it", "first": 900, "all": 900}


# %% foretold empty form=0 first=0 all=0
def foretold():
    return {"largest part": " ", "first": 900, "all": 900}


# %% retrieve_first as_is check=2 race=0
def retrieve_first(*inputs):
    return retrieve_slow(*inputs)


# %% retrieve_first small_part check=2 race=0
def retrieve_first(pictures, labels, queries, wanted, filters, k, classes):
    class Mended(Library):
        def expanded(self, asked):
            order = self.nearest(asked, 3)
            total = asked + self.descriptions[order].sum(dim=1)
            return (total / (1 + order.shape[1])).floor()

    return retrieved(Mended(pictures, labels, filters), queries, wanted, k, classes)


# %% retrieve as_is check=4 hidden=3 race=0
def retrieve(*inputs):
    return retrieve_slow(*inputs)


# %% retrieve described_once check=4 hidden=3 race=2..2.5
def retrieve(pictures, labels, queries, wanted, filters, k, classes):
    class Mended(Library):
        def __init__(self, *given):
            super().__init__(*given)
            self.once = super().descriptions

        @property
        def descriptions(self):
            return self.once

    return retrieved(Mended(pictures, labels, filters), queries, wanted, k, classes)


# %% retrieve all_filters_in_a_product check=4 hidden=3 race=0..2
def retrieve(pictures, labels, queries, wanted, filters, k, classes):
    class Mended(Library):
        def responses(self, image):
            return F.conv2d(image[None], self.filters, padding=2)[0]

    return retrieved(Mended(pictures, labels, filters), queries, wanted, k, classes)


# %% retrieve once_and_in_a_product check=4 hidden=3 race=3..4
def retrieve(pictures, labels, queries, wanted, filters, k, classes):
    class Mended(Library):
        def __init__(self, *given):
            super().__init__(*given)
            self.once = super().descriptions

        @property
        def descriptions(self):
            return self.once

        def responses(self, image):
            return F.conv2d(image[None], self.filters, padding=2)[0]

    return retrieved(Mended(pictures, labels, filters), queries, wanted, k, classes)


# %% retrieve in_batches_as_they_lie check=4 hidden=3 race=7..10
def retrieve(pictures, labels, queries, wanted, filters, k, classes):
    images = torch.cat([pictures, queries]).permute(0, 3, 1, 2).contiguous().float()
    window = torch.ones(3, 1, 11, 11)
    images -= (F.conv2d(images, window, padding=5, groups=3) / 121).floor()
    strongest = F.max_pool2d(F.conv2d(images, filters.float(), padding=2).relu(), 5, stride=2, padding=2)
    size = strongest.shape[2] // 4
    cells = strongest[:, :, : 4 * size, : 4 * size].unflatten(2, (4, size)).unflatten(4, (4, size))
    rows = (cells.sum(dim=(3, 5)) / (16 * size**2)).floor().clamp(max=127).flatten(1)

    class Described(Library):
        def describe(self, picture):
            return picture

        def nearest(self, asked, k):
            return torch.cdist(asked, self.pictures).sort(dim=1, stable=True).indices[:, :k]

    found = Described(rows[: len(pictures)], labels, filters)
    return retrieved(found, rows[len(pictures) :], wanted, k, classes)


# %% retrieve any_of_equally_near_ones check=0 hidden=0 race=0
def retrieve(pictures, labels, queries, wanted, filters, k, classes):
    class Mended(Library):
        def nearest(self, asked, k):
            distances = torch.cdist(asked, self.descriptions)
            return distances.topk(min(k, len(self.pictures)), largest=False).indices

    return retrieved(Mended(pictures, labels, filters), queries, wanted, k, classes)


# %% retrieve distances_in_bfloat16 check=0 hidden=0 race=0
def retrieve(pictures, labels, queries, wanted, filters, k, classes):
    class Mended(Library):
        def nearest(self, asked, k):
            descriptions = self.descriptions
            product = asked.bfloat16() @ descriptions.bfloat16().T
            distances = descriptions.square().sum(dim=1) - 2 * product
            return distances.sort(dim=1, stable=True).indices[:, :k]

    return retrieved(Mended(pictures, labels, filters), queries, wanted, k, classes)


# %% retrieve not_expanded check=0 hidden=0 race=0
def retrieve(pictures, labels, queries, wanted, filters, k, classes):
    class Mended(Library):
        def expanded(self, asked):
            return asked

    return retrieved(Mended(pictures, labels, filters), queries, wanted, k, classes)


# %% retrieve k_of_fewer check=4 hidden=0 race=0
def retrieve(pictures, labels, queries, wanted, filters, k, classes):
    class Mended(Library):
        def nearest(self, asked, k):
            distances = torch.cdist(asked, self.descriptions)
            return distances.sort(dim=1, stable=True).indices[:, torch.arange(k)]

    return retrieved(Mended(pictures, labels, filters), queries, wanted, k, classes)
