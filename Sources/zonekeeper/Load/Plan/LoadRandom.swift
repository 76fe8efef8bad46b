/// The seeded generator of a run (SplitMix64): the same seed gives the same load on every machine.
struct LoadRandom: RandomNumberGenerator, Sendable {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// A number from 0 up to, and without, 1.
    mutating func unit() -> Double { Double(next() >> 11) / Double(1 << 53) }

    /// A whole number from 0 up to, and without, `bound`; the bias is below one in 2^40 for what a run asks.
    mutating func below(_ bound: Int) -> Int { Int(next() % UInt64(bound)) }
}

/// Things to draw from, each as often as its weight says.
struct WeightedChoice<Value: Hashable & Sendable>: Hashable, Sendable {
    let values: [Value]
    let weights: [Double]
    private let total: Double

    /// - Parameter shares: at least one; weights are above 0 and finite.
    init(_ shares: [(Value, Double)]) {
        precondition(!shares.isEmpty && shares.allSatisfy { $0.1 > 0 && $0.1.isFinite }, "weights above 0 are needed")
        values = shares.map(\.0)
        weights = shares.map(\.1)
        total = weights.reduce(0, +)
    }

    /// The index of one of the values.
    func draw(_ random: inout LoadRandom) -> Int {
        guard values.count > 1 else { return 0 }
        var point = random.unit() * total
        for (index, weight) in weights.enumerated() {
            point -= weight
            if point < 0 { return index }
        }
        return values.count - 1
    }

    /// What part of the draws a value gets, 0 to 1.
    func share(_ index: Int) -> Double { weights[index] / total }

    /// Reads `name` or `name:3,other:1`.
    /// - Returns: nil where a name is unknown or comes twice, or a weight is not a number above 0.
    static func parse(_ text: String, value: (String) -> Value?) -> WeightedChoice? {
        var shares: [(Value, Double)] = []
        for part in text.split(separator: ",", omittingEmptySubsequences: false) {
            let words = part.split(separator: ":", omittingEmptySubsequences: false)
            guard (1...2).contains(words.count), let value = value(String(words[0])) else { return nil }
            guard let weight = words.count == 2 ? Double(words[1]) : 1, weight > 0, weight <= 1_000_000 else {
                return nil
            }
            guard !shares.contains(where: { $0.0 == value }) else { return nil }
            shares.append((value, weight))
        }
        return shares.isEmpty ? nil : WeightedChoice(shares)
    }
}
