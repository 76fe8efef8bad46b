/// Rows with a range of keys each, for finding those whose range holds a key without a look at the others.
///
/// A treap by the ranges' lower ends in which each node knows how far the ranges below it reach.
struct RangeTree: Sendable {
    private struct Node: Sendable {
        var range: KeyRange
        var row: Int64
        var priority: UInt64
        var left: Int?
        var right: Int?
        /// The greatest upper end of the node and all below it; nil is open.
        var end: KeyPosition?
    }

    private var nodes: [Node] = []
    /// Places in `nodes` that are not in use.
    private var free: [Int] = []
    private var root: Int?

    var isEmpty: Bool { root == nil }

    /// Adds a range of a row, which it does not have yet.
    mutating func insert(_ range: KeyRange, _ row: Int64) {
        // Mixed, so that the order of insertion does not make a list of the tree.
        var mixed = UInt64(bitPattern: row) &* 0x9E37_79B9_7F4A_7C15
        mixed = (mixed ^ mixed >> 32) &* 0xD6E8_FEB8_6659_FD93
        let node = Node(range: range, row: row, priority: mixed ^ mixed >> 32, end: range.upper)
        if let place = free.popLast() {
            nodes[place] = node
            root = inserted(place, into: root)
        } else {
            nodes.append(node)
            root = inserted(nodes.count - 1, into: root)
        }
    }

    /// Removes a range of a row, if it is there.
    mutating func remove(_ range: KeyRange, _ row: Int64) { root = removed(range, row, from: root) }

    /// Calls `body` with the row of each range that holds a key.
    func forEach(holding key: IndexKey, _ body: (Int64) -> Void) {
        visit(root, KeyPosition(key: key, recordID: 0), body)
    }

    private func visit(_ place: Int?, _ position: KeyPosition, _ body: (Int64) -> Void) {
        guard let place else { return }
        if let end = nodes[place].end, end <= position { return }
        visit(nodes[place].left, position, body)
        // All that is right of a range that begins behind the key does so, too.
        if let lower = nodes[place].range.lower, lower >= position { return }
        if nodes[place].range.upper.map({ position < $0 }) ?? true { body(nodes[place].row) }
        visit(nodes[place].right, position, body)
    }

    // MARK: Shape

    private static func precedes(_ left: KeyRange, _ leftRow: Int64, _ right: KeyRange, _ rightRow: Int64) -> Bool {
        switch (left.lower, right.lower) {
        case (nil, nil): leftRow < rightRow
        case (nil, _): true
        case (_, nil): false
        case (let left?, let right?): left == right ? leftRow < rightRow : left < right
        }
    }

    private func precedes(_ left: Int, _ right: Int) -> Bool {
        Self.precedes(nodes[left].range, nodes[left].row, nodes[right].range, nodes[right].row)
    }

    /// Makes a node's end what it and its children come to.
    private mutating func settle(_ place: Int) {
        var end = nodes[place].range.upper
        for child in [nodes[place].left, nodes[place].right] {
            guard let child, let known = end else { continue }
            end = nodes[child].end.map { max($0, known) }
        }
        nodes[place].end = end
    }

    private mutating func inserted(_ new: Int, into place: Int?) -> Int {
        guard let place else { return new }
        if nodes[new].priority > nodes[place].priority {
            let (left, right) = split(place, at: new)
            (nodes[new].left, nodes[new].right) = (left, right)
            settle(new)
            return new
        }
        if precedes(new, place) {
            let left = inserted(new, into: nodes[place].left)
            nodes[place].left = left
        } else {
            let right = inserted(new, into: nodes[place].right)
            nodes[place].right = right
        }
        settle(place)
        return place
    }

    /// What is before a node that is not among these, and what is behind it.
    private mutating func split(_ place: Int?, at new: Int) -> (Int?, Int?) {
        guard let place else { return (nil, nil) }
        defer { settle(place) }
        if precedes(place, new) {
            let (left, right) = split(nodes[place].right, at: new)
            nodes[place].right = left
            return (place, right)
        }
        let (left, right) = split(nodes[place].left, at: new)
        nodes[place].left = right
        return (left, place)
    }

    private mutating func removed(_ range: KeyRange, _ row: Int64, from place: Int?) -> Int? {
        guard let place else { return nil }
        let node = nodes[place]
        if node.row == row, node.range.lower == range.lower {
            free.append(place)
            return merged(node.left, node.right)
        }
        if Self.precedes(range, row, node.range, node.row) {
            let left = removed(range, row, from: node.left)
            nodes[place].left = left
        } else {
            let right = removed(range, row, from: node.right)
            nodes[place].right = right
        }
        settle(place)
        return place
    }

    /// Joins two trees of which one is before the other.
    private mutating func merged(_ left: Int?, _ right: Int?) -> Int? {
        guard let left else { return right }
        guard let right else { return left }
        if nodes[left].priority > nodes[right].priority {
            let joined = merged(nodes[left].right, right)
            nodes[left].right = joined
            settle(left)
            return left
        }
        let joined = merged(left, nodes[right].left)
        nodes[right].left = joined
        settle(right)
        return right
    }
}
