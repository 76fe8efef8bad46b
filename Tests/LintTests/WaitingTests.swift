import Testing

/// Tests wait for what happened, not for time to pass; `awaitState` in TestSupport is the one place that asks again.
@Suite("Waiting")
struct WaitingTests {
    /// Lines of tests' code in which all of some words stand, by file. Simulated time is no time.
    private static func lines(_ words: [[String]]) -> [String: Int] {
        let tests = Repository.swift.filter {
            $0.file.hasPrefix("Tests/") && !["LintTests", "Simulation"].contains(Repository.target(of: $0.file))
        }
        let counts = tests.map { file, source in
            let count = source.lines.indices.count { number in
                let code = source.codeText(number)
                return words.contains { $0.allSatisfy { code.contains($0) } }
            }
            return (file, count)
        }
        return Dictionary(uniqueKeysWithValues: counts)
    }

    @Test("tests do not sleep, under any name")
    func sleeps() throws {
        let timers = [["sleep("], ["asyncAfter("], ["scheduleTask("], ["wait(timeout:"], ["DispatchSourceTimer"]]
        try Exceptions(name: "timers", bound: 0, advice: "wait for the event, or for a state with awaitState")
            .check(Self.lines(timers))
    }

    @Test("tests assert no durations")
    func durations() throws {
        let measures = [["ContinuousClock.now -"], ["SuspendingClock.now -"], ["timeIntervalSince("], [".measure {"]]
        try Exceptions(name: "durations", bound: 0, advice: "assert counts, or the order of events")
            .check(Self.lines(measures))
    }

    @Test("tests do not repeat what was answered with 503")
    func retries() throws {
        try Exceptions(
            name: "retries", bound: 0,
            advice:
                "a 503 is a failure, but where the test has just killed or moved a leader; say so, and use awaitState"
        ).check(Self.lines([["for ", "503"], ["while ", "503"], ["status != 503"]]))
    }
}
