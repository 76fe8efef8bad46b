import CoreLocation
import Foundation
import RaftCore
import Testing

@testable import CloudKit

@Suite("A predicate printed as a format is read as the same predicate")
struct PredicateRoundTripTests {
    @Test("300 random predicates come back")
    func random() throws {
        var generator = PredicateGenerator(random: SplitMix64(seed: 42))
        for _ in 0..<300 {
            let node = generator.node(depth: 4)
            let printer = PredicatePrinter(node)
            let again = try PredicateParser.parse(printer.format, arguments: printer.arguments)
            try #require(again == node, "\(printer.format)")
            let text = PredicateArchive.text(of: .success(node))
            let archived = try #require(PredicateArchive.predicate(from: text), "\(text)")
            guard case .success(let read) = PredicateReading.read(archived) else {
                Issue.record("\(text)")
                continue
            }
            #expect(read == node)
        }
    }

    @Test("The printed format is the one that people write")
    func words() {
        let format = "NOT (#in == 'it\\'s') AND ANY tags BEGINSWITH 'a' AND (a < -1 OR b IN {1, 2.5})"
        guard case .success(let node) = PredicateReading.read(NSPredicate(format: format)) else {
            Issue.record("not read")
            return
        }
        #expect(
            PredicatePrinter(node).format
                == "NOT #in == 'it\\'s' AND ANY tags BEGINSWITH 'a' AND (a < -1 OR b IN {1, 2.5})")
    }
}

/// Makes predicates of every kind that the format can say.
private struct PredicateGenerator {
    var random: SplitMix64

    private mutating func pick(_ count: Int) -> Int { Int.random(in: 0..<count, using: &random) }

    private mutating func pick<Element>(of list: [Element]) -> Element { list[pick(list.count)] }

    mutating func node(depth: Int) -> PredicateNode {
        switch depth == 0 ? 3 : pick(6) {
        case 0: return .not(node(depth: depth - 1), .none)
        case 1: return .and((0..<2 + pick(3)).map { _ in node(depth: depth - 1) })
        case 2: return .or((0..<2 + pick(3)).map { _ in node(depth: depth - 1) }, .none)
        case 3 where pick(8) == 0: return .constant(pick(2) == 0)
        default:
            return .comparison(
                PredicateComparison(
                    quantifier: pick(3) == 0 ? pick(of: PredicateComparison.Quantifier.allCases) : nil,
                    left: expression(depth: 2), comparator: pick(of: PredicateOperator.allCases),
                    options: pick(4) == 0 ? pick(of: ["c", "cd", "cdl", "n"]) : "", right: expression(depth: 2),
                    mark: .none))
        }
    }

    private mutating func expression(depth: Int) -> PredicateTerm {
        switch pick(depth == 0 ? 4 : 7) {
        case 0: return .field(name())
        case 1: return .itself
        case 2, 3: return .value(value(depth: depth))
        case 4: return .keyPath((0..<2 + pick(2)).map { _ in pick(of: ["a", "in", "b2", "SELF", "größe"]) })
        case 5: return .function(pick(of: ["now", "distanceToLocation:fromLocation:", "f"]), members(depth: depth - 1))
        default: return .list(members(depth: depth - 1) + [.field(name())])
        }
    }

    private mutating func members(depth: Int) -> [PredicateTerm] {
        (0..<pick(3)).map { _ in expression(depth: depth) }
    }

    private mutating func name() -> String {
        pick(of: [
            "a", "title", "in", "NOT", "True", "größe", "with space", "_x", "x9", "tokenize", "first", "a:b", "'",
        ])
    }

    private mutating func value(depth: Int) -> PredicateValue {
        switch pick(depth == 0 ? 7 : 8) {
        case 0: return .null
        case 1: return .string(pick(of: ["", "a'b\"c\\", "%@ %K", "line\nline\r", "é👩‍👩‍👧\u{0}", "TRUE"]))
        case 2: return .integer(pick(of: [0, 1, -1, .max, .min, Int64(pick(1000)) - 500]))
        case 3: return .double(pick(of: [0.1, -2.5, 1e300, -1e-300, 5, Double(pick(1000)) / 7]))
        case 4: return .date(milliseconds: Int64(pick(1_000_000)) - 500_000)
        case 5: return .data(Data((0..<pick(5)).map { UInt8($0) }))
        case 6:
            return pick(2) == 0
                ? .location(latitude: Double(pick(90)), longitude: -Double(pick(90)) / 3)
                : .reference(recordName: "r\(pick(9))", zoneName: "z", ownerName: "__defaultOwner__")
        default: return .list((0..<pick(4)).map { _ in value(depth: depth - 1) })
        }
    }
}
