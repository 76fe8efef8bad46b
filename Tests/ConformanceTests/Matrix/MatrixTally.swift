import Foundation
import RaftCore
import RecordModel
import Testing

extension Matrix {
    /// Counts cells, and keeps those in which server and oracle differ.
    struct Tally {
        var name: String
        private(set) var cells = 0
        private(set) var differences: [String] = []

        init(_ name: String) { self.name = name }

        mutating func cell(_ what: @autoclosure () -> String, _ faults: [String]) {
            cells += 1
            if !faults.isEmpty { differences.append("\(what()): \(faults.joined(separator: "; "))") }
        }

        /// A cell that is about an error code; the empty one is success.
        mutating func cell(
            _ what: @autoclosure () -> String, wanted: Set<String>, got: String, leaks: [String] = []
        ) {
            var faults = leaks.map { "shows the secret of \($0)" }
            if !wanted.contains(got) { faults.append("\(Self.word(got)) where \(Self.words(wanted)) is right") }
            cell(what(), faults)
        }

        /// Fails where there are differences, or fewer cells than there were.
        func judge(atLeast cellsMin: Int, sourceLocation: SourceLocation = #_sourceLocation) {
            print("authorization matrix, \(name): \(cells) cells, \(differences.count) differences")
            #expect(cells >= cellsMin, "only \(cells) cells", sourceLocation: sourceLocation)
            for difference in differences.prefix(20) {
                Issue.record("\(difference)", sourceLocation: sourceLocation)
            }
            #expect(differences.isEmpty, "\(differences.count) differences", sourceLocation: sourceLocation)
        }

        private static func word(_ code: String) -> String { code.isEmpty ? "success" : code }
        private static func words(_ codes: Set<String>) -> String { codes.sorted().map(word).joined(separator: " or ") }
    }

    /// Values that only readers may see. Each names whose it is, so that one that is found anywhere tells where it
    /// comes from.
    enum Secret {
        private static let mark = "s3cr3t."

        static func value(of name: String) -> String { "\(mark)\(name)." }

        /// Whose secrets an answer has: in its bytes, its headers, or in anything that is base64 there.
        static func owners(in answer: Answer) -> Set<String> {
            var found = owners(in: Data(answer.body))
            for (_, value) in answer.headers { found.formUnion(owners(in: Data(value.utf8))) }
            collect(answer.json, &found)
            return found
        }

        private static func collect(_ json: JSONValue, _ found: inout Set<String>) {
            switch json {
            case .string(let text):
                guard text.utf8.count >= 12, text.utf8.count % 4 == 0, let data = Data(base64Encoded: text) else {
                    return
                }
                found.formUnion(owners(in: data))
            case .array(let members): for member in members { collect(member, &found) }
            case .object(let members): for member in members { collect(member.value, &found) }
            default: break
            }
        }

        private static func owners(in data: Data) -> Set<String> {
            var found: Set<String> = []
            var rest = data.startIndex..<data.endIndex
            while let range = data.range(of: Data(mark.utf8), in: rest) {
                let name = data[range.upperBound...].prefix { $0 != UInt8(ascii: ".") }
                found.insert(String(decoding: name.prefix(80), as: UTF8.self))
                rest = range.upperBound..<data.endIndex
            }
            return found
        }
    }

    /// Numbers that look random and are the same in each run.
    struct Dice {
        private var numbers: SplitMix64

        init(seed: UInt64) { numbers = SplitMix64(seed: seed) }

        mutating func next(below bound: Int) -> Int { Int(numbers.next() % UInt64(bound)) }
    }
}
