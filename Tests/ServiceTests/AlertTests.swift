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

    private static func finding(
        _ rule: AlertRule, of container: String = "", value: Int64 = 0, isWrong: Bool = false
    ) -> AlertFinding {
        var finding = AlertFinding(rule, on: 1, value)
        finding.container = container
        if isWrong { (finding.since, finding.isFiring) = (1, true) }
        return finding
    }

    @Test("findings survive their binary form, which builds of feature level 10 read and wrote")
    func wire() throws {
        var finding = AlertFinding(.errors, on: 3, 7, "of 100 requests")
        (finding.container, finding.environment, finding.threshold) = ("c", .production, 5)
        (finding.time, finding.since, finding.isFiring) = (9, 8, true)
        let findings = AlertFindings([AlertFinding(.clock, on: 1, -2), finding])
        #expect(findings.findings.count == 2)
        #expect(try AlertFindings(decoding: findings.encoded()) == findings)
        // As 0.1.0 writes one.
        let released: [UInt8] =
            [0x0A, 21, 0x0A, 5] + Array("clock".utf8) + [0x10, 1, 0x1A, 0, 0x28, 3, 0x32, 0, 0x38, 0, 0x40, 0, 0x50, 0]
        #expect(AlertFindings([AlertFinding(.clock, on: 1, -2)]).encoded() == released)
        #expect(try AlertFindings(decoding: released).findings == [AlertFinding(.clock, on: 1, -2)])
        #expect(NodeInquiry.alerts(of: nil).encoded() == [0x58, 1])
        // What the field says that 0.1.0 does not know is passed over there.
        #expect(NodeInquiry.alerts(of: ["c"]).encoded().starts(with: [0x58, 1]))
        for containers in [nil, [], ["a"], ["a", "b"]] {
            let inquiry = NodeInquiry.alerts(of: containers)
            #expect(try NodeInquiry(decoding: inquiry.encoded()) == inquiry)
        }
    }

    @Test("a rule of a newer build is passed over and named; a finding that is damaged is not")
    func newerRules() throws {
        func told(_ rule: String) -> [UInt8] {
            [0x0A, UInt8(rule.utf8.count + 4), 0x0A, UInt8(rule.utf8.count)] + Array(rule.utf8) + [0x10, 3]
        }
        let known = AlertFindings([AlertFinding(.clock, on: 1, 2)])
        let read = try AlertFindings(decoding: told("gravity") + known.encoded() + told("gravity"))
        #expect(read.findings == known.findings && read.unknownRules == ["gravity", "gravity"])
        #expect(try AlertFindings(decoding: read.encoded()).unknownRules == read.unknownRules)
        #expect(try AlertFindings(decoding: told("elections")).findings.map(\.node) == [3])
        #expect(throws: WireError.self) { try AlertFindings(decoding: [0x0A, 2, 0x10, 3]) }
        // Its environment is none.
        let environment: [UInt8] = [0x0A, 12, 0x0A, 5] + Array("clock".utf8) + [0x22, 3] + Array("mad".utf8)
        #expect(throws: WireError.self) { try AlertFindings(decoding: environment) }
    }

    @Test("a node tells of a bounded number by each rule: what is wrong first, then what is nearest to it")
    func bound() {
        let max = AlertFindings.perRuleMax
        let fine = (1...2 * max).map { Self.finding(.slowAnswers, of: "c\($0)", value: Int64($0)) }
        let wrong = (1...3).map { Self.finding(.slowAnswers, of: "w\($0)", value: 0, isWrong: true) }
        let told = AlertFindings(fine + [Self.finding(.elections)] + wrong)
        #expect(told.findings.count == max + 1 && told.leftOut == 0)
        let answers = told.findings.filter { $0.rule == .slowAnswers }
        #expect(answers.prefix(3).allSatisfy { $0.since != nil } && answers[3].value == Int64(2 * max))
        let many = (0..<max + 5).map { Self.finding(.errors, of: "c\($0)", isWrong: true) }
        #expect(AlertFindings(many).leftOut == 5)
        // A disk is the worse the less is free.
        let disks = (0...max).map { Self.finding(.diskSpace, value: Int64($0)) }
        #expect(!AlertFindings(disks).findings.contains { $0.value == Int64(max) })
    }

    @Test("of containers' rules only those are told that are asked for")
    func containers() {
        let found = [Self.finding(.errors, of: "a"), Self.finding(.errors, of: "b"), Self.finding(.clock)]
        #expect(AlertFindings(found, of: ["b"]).findings.map(\.container) == ["", "b"])
        #expect(AlertFindings(found).findings.count == 3)
        // An administrator of no container is told of the nodes alone.
        let many = (0...AlertFindings.perRuleMax).map { Self.finding(.errors, of: "c\($0)", isWrong: true) }
        let none = AlertFindings(many + found, of: [])
        #expect(none.findings.map(\.rule) == [.clock] && none.leftOut == 0)
    }

    @Test("what another node finds right by a later look is not wrong, also where all have too much to tell")
    func laterLook() async {
        let containers = (0..<2 * AlertFindings.perRuleMax).map { "c\($0)" }
        func look(at time: Int64, isWrong: @escaping (Int, AlertRule) -> Bool) -> [AlertFinding] {
            [AlertRule.publicData, .transfer].flatMap { rule in
                containers.enumerated().map { number, container in
                    var finding = Self.finding(rule, of: container, isWrong: isWrong(number, rule))
                    (finding.environment, finding.time) = (.production, time)
                    return finding
                }
            }
        }
        // The first node finds the first half wrong by one rule, and the others by the other.
        let early = look(at: 1) { ($0 < AlertFindings.perRuleMax) == ($1 == .publicData) }
        let nodes = [early, look(at: 2) { _, _ in false }]
        for asked in [nil, containers] {
            let found = await AlertAdministration.findings(of: asked) { containers in
                nodes.enumerated().map { number, findings in
                    NodeAnswer(node: UInt64(number + 1), answer: .success(AlertFindings(findings, of: containers)))
                }
            }.found
            #expect(found.count { $0.since != nil } >= 2 * AlertFindings.perRuleMax)
            for rule in [AlertRule.publicData, .transfer] {
                #expect(AlertAdministration.current(found.filter { $0.rule == rule }).allSatisfy { $0.since == nil })
            }
        }
    }
}
