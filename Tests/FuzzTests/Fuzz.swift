import Foundation
import RaftCore
import Testing

/// How many inputs there are, and what they are made from.
///
/// Each input follows from its number alone, so the number that a failure prints is enough to make it again:
/// `ZONEKEEPER_FUZZ_FIRST=that ZONEKEEPER_FUZZ_INPUTS=1 swift test --filter FuzzTests`.
enum Fuzz {
    /// Inputs of all suites together; `ZONEKEEPER_FUZZ_INPUTS` says how many.
    static let inputs = setting("ZONEKEEPER_FUZZ_INPUTS") ?? 20_000
    /// The number of the first input; `ZONEKEEPER_FUZZ_FIRST` goes on where another run ended.
    static let first = setting("ZONEKEEPER_FUZZ_FIRST") ?? 0
    /// The suites that share the inputs.
    private static let suites = 4

    private static func setting(_ name: String) -> Int? {
        ProcessInfo.processInfo.environment[name].flatMap { Int($0) }
    }

    /// What came of the inputs of one suite.
    struct Outcome {
        /// Inputs that were taken, and those that were refused with an error.
        var taken = 0
        var refused = 0

        /// A run that takes or refuses nearly everything tests one half only.
        func expectBoth(sourceLocation: SourceLocation = #_sourceLocation) {
            let all = taken + refused
            guard all >= 1000 else { return }
            #expect(taken > all / 200 && refused > all / 200, "\(self)", sourceLocation: sourceLocation)
        }
    }

    /// Runs `body` on this suite's share of the inputs. `body` answers whether the input was taken, and throws what it
    /// found wrong.
    static func run(salt: UInt64, _ body: (inout FuzzRandom) throws -> Bool) -> Outcome {
        var outcome = Outcome()
        var failures = 0
        for number in first..<(first + max(1, inputs / suites)) {
            var random = FuzzRandom(seed: UInt64(number) &* 0x2545_F491_4F6C_DD1D ^ salt)
            do {
                if try body(&random) { outcome.taken += 1 } else { outcome.refused += 1 }
            } catch {
                Issue.record("input \(number): \(error)")
                failures += 1
                if failures == 10 { break }
            }
        }
        return outcome
    }

    /// What a property that does not hold throws.
    struct Broken: Error, CustomStringConvertible {
        var description: String
        init(_ description: String) { self.description = String(description.prefix(1500)) }
    }

    /// `#expect` costs more than most properties, and this is called millions of times.
    static func require(_ holds: Bool, _ what: @autoclosure () -> String) throws {
        if !holds { throw Broken(what()) }
    }
}

/// SplitMix64: the same numbers for the same seed, everywhere.
struct FuzzRandom: RandomNumberGenerator {
    private var numbers: SplitMix64

    init(seed: UInt64) { numbers = SplitMix64(seed: seed) }

    mutating func next() -> UInt64 { numbers.next() }

    mutating func below(_ bound: Int) -> Int { Int(truncatingIfNeeded: next() >> 1) % bound }

    mutating func chance(_ percent: Int) -> Bool { below(100) < percent }

    mutating func pick<Element>(_ elements: [Element]) -> Element { elements[below(elements.count)] }

    mutating func bytes(_ bound: Int) -> [UInt8] { (0..<below(bound)).map { _ in UInt8(truncatingIfNeeded: next()) } }

    /// The same bytes with a few changed, cut off, put in, doubled or taken out; `words` are put in whole.
    mutating func mutated(_ original: [UInt8], words: [String]) -> [UInt8] {
        var bytes = original
        for _ in 0...below(4) where !bytes.isEmpty {
            let place = below(bytes.count)
            let end = min(bytes.count, place + 1 + below(16))
            switch below(8) {
            case 0: bytes[place] = UInt8(truncatingIfNeeded: next())
            case 1: bytes[place] ^= 1 << UInt8(below(8))
            case 2: bytes.insert(UInt8(truncatingIfNeeded: next()), at: place)
            case 3: bytes.removeSubrange(place..<end)
            case 4: bytes.insert(contentsOf: bytes[place..<end], at: place)
            case 5, 6: bytes.insert(contentsOf: pick(words).utf8, at: place)
            default: bytes.removeSubrange(end...)
            }
        }
        return bytes
    }
}
