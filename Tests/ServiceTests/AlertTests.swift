import RecordModel
import Testing
import Wire

@testable import Service

@Suite("Alerts")
struct AlertTests {
    private static let minute: Int64 = 60_000

    /// What comes of values at minutes, judged by a threshold: whether it is wrong, and whether it fires.
    private static func states(
        _ rule: AlertRule, _ values: [Int64], threshold: Int64
    ) -> [AlertAdministration.State] {
        var memory = AlertMemory()
        return values.enumerated().map { step, value in
            let found = memory.judge([AlertFinding(rule, on: 1, value)], at: Int64(step + 1) * minute) { _ in
                threshold
            }
            return found[0].isFiring ? .firing : found[0].since == nil ? .ok : .pending
        }
    }

    @Test("a value fires once it has been wrong for as long as its rule asks for, and not before")
    func values() {
        #expect(Self.states(.elections, [4, 5, 9, 4], threshold: 5) == [.ok, .firing, .firing, .ok])
        #expect(Self.states(.overload, [99, 100, 100, 100], threshold: 100) == [.ok, .pending, .pending, .firing])
        #expect(Self.states(.overload, [100, 99, 100, 100], threshold: 100) == [.pending, .ok, .pending, .pending])
        #expect(Self.states(.certificate, [15, 14, 0], threshold: 14) == [.ok, .firing, .firing])
        #expect(Self.states(.certificate, [0], threshold: 0) == [.ok], "0 switches it off")
        #expect(Self.states(.elections, [9], threshold: 0) == [.ok])
    }

    @Test("where minutes are the threshold, they are the value")
    func minutes() {
        #expect(Self.states(.nodeDown, [1, 1, 1, 0, 1], threshold: 2) == [.pending, .pending, .firing, .ok, .pending])
        #expect(Self.states(.nodeDown, [1, 1], threshold: 0) == [.ok, .ok])
        var memory = AlertMemory()
        let values = [1, 1, 0].enumerated().map { step, value in
            memory.judge([AlertFinding(.nodeDown, on: 3, value)], at: Int64(step) * 90_000) { _ in 1 }[0].value
        }
        #expect(values == [0, 1, 0])
    }

    @Test("places are apart, what is not found any more is right, and a clock that was set back begins again")
    func places() {
        var memory = AlertMemory()
        func look(_ nodes: [UInt64], at time: Int64) -> [Int64?] {
            memory.judge(nodes.map { AlertFinding(.elections, on: $0, 9) }, at: time) { _ in 5 }.map(\.since)
        }
        #expect(look([1], at: 10) == [10])
        #expect(look([1, 2], at: 20) == [10, 20])
        #expect(look([2], at: 30) == [20])
        #expect(look([1, 2], at: 40) == [40, 20])
        #expect(look([1, 2], at: 5) == [5, 5])
    }

    @Test("findings survive their binary form")
    func wire() throws {
        var finding = AlertFinding(.errors, on: 3, 7, "of 100 requests")
        (finding.container, finding.environment, finding.threshold) = ("c", .production, 5)
        (finding.time, finding.since, finding.isFiring) = (9, 8, true)
        let findings = AlertFindings(findings: [finding, AlertFinding(.clock, on: 1, -2)])
        #expect(try AlertFindings(decoding: findings.encoded()) == findings)
        #expect(try NodeInquiry(decoding: NodeInquiry.alerts.encoded()) == .alerts)
    }
}
