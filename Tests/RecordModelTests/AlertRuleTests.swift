import Foundation
import RecordModel
import Testing

@Suite("Rules of alerts")
struct AlertRuleTests {
    private static func document(_ name: String) throws -> String {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        return try String(contentsOf: root.appending(path: "docs/\(name)"), encoding: .utf8)
    }

    /// Those that Prometheus cannot know, as no label names a container, or which it has no metric for.
    private static let own: Set<AlertRule> = [.publicData, .transfer]

    @Test("the document lists each with its limit and its default, and no other")
    func document() throws {
        let rows = try Self.document("monitoring.md").split(separator: "\n").filter { $0.contains("| `alert") }
        let expected = AlertRule.allCases.map { rule in
            "`\(rule.rawValue)` | \(rule.severity.rawValue) | `\(rule.limit.rawValue)` | "
                + Self.threshold(of: rule) + " |"
        }
        for (row, expected) in zip(rows, expected) { #expect(row.hasPrefix("| \(expected)"), "\(expected)") }
        #expect(rows.count == expected.count)
    }

    private static func threshold(of rule: AlertRule) -> String {
        let (value, unit) = (rule.limit.standard, rule.limit.unit.rawValue)
        let bound = (rule.measure == .below ? "at most " : "") + "\(value) \(unit)"
        return rule.minutes > 0 ? "\(bound), for \(rule.minutes) minutes" : bound
    }

    /// Those that Prometheus has beside them, with their severities: the nodes tell of a full disk by `diskSpace`.
    private static let others = ["DiskShort": "page"]

    @Test("Prometheus has the same rules, of the same severity, and one for a disk that is full")
    func prometheus() throws {
        let text = try Self.document("monitoring/alerts.yml")
        var found: [String: String] = [:]
        for part in text.components(separatedBy: "- alert: Zonekeeper").dropFirst() {
            let name = String(part.prefix { !$0.isNewline })
            let severity = part.components(separatedBy: "severity: ").dropFirst().first?.prefix { $0.isLetter }
            found[name] = severity.map(String.init)
        }
        let rules = AlertRule.allCases.filter { !Self.own.contains($0) }
        let expected = rules.map { rule in
            (rule.rawValue.prefix(1).uppercased() + rule.rawValue.dropFirst(), rule.severity.rawValue)
        }
        #expect(found == Dictionary(uniqueKeysWithValues: expected).merging(Self.others) { own, _ in own })
    }

    @Test("each has a threshold of its own, which may be switched off")
    func limits() {
        #expect(Set(AlertRule.allCases.map(\.limit)).count == AlertRule.allCases.count)
        #expect(ContainerLimit.allCases.filter { $0.rawValue.hasPrefix("alert") }.map(\.alert) == AlertRule.allCases)
        for rule in AlertRule.allCases {
            #expect(rule.limit.range.lowerBound == 0 && rule.limit.range.contains(rule.limit.standard))
            #expect(rule.limit.standard > 0)
            #expect((rule.measure == .minutes) == (rule.limit.unit == .minutes))
        }
    }
}
