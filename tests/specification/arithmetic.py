"""Values of the executable specification: hashes in place of tensors, so that "the same bits" is "the same number".

A gradient is a hash of (PS shard, step, slot, the whole parameter vector that it was computed from); parameters are a chain of
hashes over gradients that were combined along the reduction tree. A step that mixes versions, misses or doubles a slot, or takes
a value of another timeline is seen at the event that does it.
"""


def mixed(*numbers):
    """A hash of integers: the same in every process."""
    return hash(numbers)


# ---- the reduction tree over [0, slots)

def middle(begin, end):
    """Where a node of more than one slot splits: at the largest power of two below its size."""
    size = 1
    while 2 * size < end - begin:
        size *= 2
    return begin + size


def cover(first, last, begin, end):
    """The fewest nodes inside the node [begin, end) that make up [first, last)."""
    if first >= last or last <= begin or first >= end:
        return []
    if first <= begin and end <= last:
        return [(begin, end)]
    split = middle(begin, end)
    return cover(first, last, begin, split) + cover(first, last, split, end)


def siblings(begin, end, found):
    """Each node but the root -> (left, right, parent)."""
    if end - begin > 1:
        split = middle(begin, end)
        found[(begin, split)] = found[(split, end)] = ((begin, split), (split, end), (begin, end))
        siblings(begin, split, found)
        siblings(split, end, found)
    return found


def inside(node, other):
    return other[0] <= node[0] and node[1] <= other[1]


def insert(held, node, value, tree):
    """R5: what is inside a held node is dropped, what contains held ones replaces them, complete siblings merge."""
    for other in held:
        if inside(node, other):
            return
    for other in [other for other in held if inside(other, node)]:
        del held[other]
    held[node] = value
    while node in tree:
        left, right, parent = tree[node]
        if left not in held or right not in held:
            break
        held[parent] = mixed(1, held.pop(left), held.pop(right))
        node = parent


# ---- what is trained

class revision:
    """What a timeline trains: a number a step (an operator's change makes others), and the slots that are left out."""

    def __init__(self, salts, parked):
        self.salts, self.parked = salts, parked

    def leaves_out(self, step, slots):
        """Whether nothing of the step is left."""
        return all((step, slot) in self.parked for slot in range(slots))


class arithmetic:
    """The job: how many PS shards, slots and steps, and what comes of them without any disturbance."""

    def __init__(self, shards, slots, steps, coupled):
        self.shards, self.slots, self.steps, self.coupled = shards, slots, steps, coupled
        self.tree = siblings(0, slots, {})
        self.undisturbed = {}

    @staticmethod
    def initial(shard):
        return mixed(5, shard)

    @staticmethod
    def parked_gradient(shard, step, slot):
        return mixed(7, shard, step, slot)

    def gradient(self, shard, step, node, vector, parked):
        """The sum over the slots of `node`, computed from the parameter vector whose hash is `vector`."""
        begin, end = node
        if end - begin == 1:
            if (step, begin) in parked:
                return self.parked_gradient(shard, step, begin)
            return mixed(2, shard, step, begin, vector)
        split = middle(begin, end)
        return mixed(1, self.gradient(shard, step, (begin, split), vector, parked),
                     self.gradient(shard, step, (split, end), vector, parked))

    @staticmethod
    def norm(gradient):
        return mixed(4, gradient)

    @staticmethod
    def update(parameters, gradient, coupled, salt):
        return mixed(3, parameters, gradient, coupled, salt)

    def expected(self, trained):
        """The undisturbed run: for each version the tuple of its parts, one a shard."""
        key = (trained.salts, trained.parked)
        if key not in self.undisturbed:
            versions = [tuple(self.initial(shard) for shard in range(self.shards))]
            for step in range(self.steps):
                vector = hash(versions[-1])
                roots = [self.gradient(shard, step, (0, self.slots), vector, trained.parked) for shard in range(self.shards)]
                coupled = hash(tuple(self.norm(root) for root in roots)) if self.coupled else 0
                versions.append(tuple(self.update(versions[-1][shard], roots[shard], coupled, trained.salts[step])
                                      for shard in range(self.shards)))
            self.undisturbed[key] = versions
        return self.undisturbed[key]
