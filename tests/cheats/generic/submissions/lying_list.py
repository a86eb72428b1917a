"""Returns a list that claims another length and equals everything. Seen: tensor subclasses that hijack ==. Expected: invalid."""


class Liar(list):
    def __len__(self):
        return 50

    def __eq__(self, other):
        return True

    __hash__ = None

    def __iter__(self):
        return iter(())


def predict(xs):
    return Liar()
