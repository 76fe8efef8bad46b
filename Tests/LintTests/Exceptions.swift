import Foundation
import Testing

/// A list of what still breaks a rule, in `Lists/<name>.txt`: a line `<figure> <what>` each.
///
/// The figures are those of the tree. A figure that rose breaks the rule. One that fell is written down, so that it
/// cannot rise again. `ZONEKEEPER_LINT_REWRITE=1` writes the lists as the tree is now; a change that raises a figure
/// there, or adds a line, is not to be merged.
struct Exceptions {
    /// The file's name without its ending.
    let name: String
    /// The largest figure that needs no exception.
    let bound: Int
    /// What to do about one that is larger.
    let advice: String

    private var path: String { Repository.root.appending(path: "Tests/LintTests/Lists/\(name).txt").path }

    /// Holds what was measured against the bound and the list.
    func check(_ measured: [String: Int]) throws {
        let broken = measured.filter { $0.value > bound }
        if ProcessInfo.processInfo.environment["ZONEKEEPER_LINT_REWRITE"] == "1" {
            let lines = broken.sorted { $0.key < $1.key }.map { "\($0.value) \($0.key)\n" }
            return try lines.joined().write(toFile: path, atomically: true, encoding: .utf8)
        }
        let listed = try list()
        for (what, figure) in broken.sorted(by: { $0.key < $1.key }) where figure > listed[what] ?? bound {
            let allowed = listed[what].map { "\($0) by Lists/\(name).txt, which only shrinks" } ?? "\(bound)"
            Issue.record("\(what) has \(figure), and may have \(allowed): \(advice)")
        }
        let better = listed.filter { broken[$0.key] ?? bound < $0.value }.keys.sorted()
        #expect(
            better.isEmpty,
            """
            better than Lists/\(name).txt says: \(better.joined(separator: ", ")). Write it down: \
            ZONEKEEPER_LINT_REWRITE=1 swift test --filter LintTests
            """)
    }

    private func list() throws -> [String: Int] {
        var figures: [String: Int] = [:]
        for line in try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n") {
            let parts = line.split(separator: " ", maxSplits: 1)
            let figure = try #require(parts.count == 2 ? Int(parts[0]) : nil, "Lists/\(name).txt: \(line)")
            #expect(figures.updateValue(figure, forKey: String(parts[1])) == nil, "twice in Lists/\(name).txt: \(line)")
        }
        return figures
    }
}
