import CloudKit

/// What a row waits for.
enum Subject: String, CaseIterable {
    case sharing = "Sharing and the shared database"
}

/// Whether a row is done.
enum RowState {
    /// Its check has to pass.
    case run
    /// Its check has to fail, because the subject is not built. A check that passes fails the run: then the row is to
    /// be marked `run`.
    case pending(Subject)
    /// Nothing of ours would show it, for a reason that `DifferencesFromApple` says as well.
    case outside(String)
}

/// A row of the list of what the seeds show.
struct SeedRow {
    let number: Int
    let title: String
    let state: RowState
    let check: (Surroundings) async throws -> Void

    /// A row that has to pass.
    static func run(
        _ number: Int, _ title: String, _ check: @escaping (Surroundings) async throws -> Void
    ) -> SeedRow {
        SeedRow(number: number, title: title, state: .run, check: check)
    }

    /// A row that waits, with the check that it has to pass one day.
    static func pending(
        _ number: Int, on subject: Subject, _ title: String,
        _ check: @escaping (Surroundings) async throws -> Void
    ) -> SeedRow {
        SeedRow(number: number, title: title, state: .pending(subject), check: check)
    }

    /// A row that is done in the console: the tests of `Tests/Console` that name it do it in a browser.
    static func console(_ number: Int, _ title: String) -> SeedRow {
        .run(number, title) { _ in
            let tests = try CommandLineTool.consoleTests(ofRow: number)
            try expect(
                tests.status == 0, "scripts/test-console --seed-row \(number):\n" + tests.output.suffix(2_000))
        }
    }

    /// A row that is about something else.
    static func outside(_ number: Int, _ title: String, because reason: String) -> SeedRow {
        SeedRow(number: number, title: title, state: .outside(reason)) { _ in }
    }
}

/// What became of a row.
enum RowOutcome {
    case passed
    case pending(String)
    case outside(String)
    case failed(String)
}

extension SeedRow {
    /// Runs the check and judges its end by the state.
    func outcome(in surroundings: Surroundings) async -> RowOutcome {
        if case .outside(let reason) = state { return .outside(reason) }
        let problem: String?
        var isRefusal = false
        do {
            try await check(surroundings)
            problem = nil
        } catch let error as CKError {
            problem = "\(error)"
            isRefusal = error.code == .serverRejectedRequest
        } catch {
            problem = "\(error)"
        }
        switch (state, problem) {
        case (.run, nil): return .passed
        case (.run, let problem?): return .failed(problem)
        case (.pending(let subject), nil):
            return .failed(
                "it works now: mark row \(number) as run, it does not wait for \"\(subject.rawValue)\" any more")
        case (.pending(let subject), let problem?):
            return isRefusal
                ? .pending(subject.rawValue) : .failed("it waits for \"\(subject.rawValue)\", but: \(problem)")
        case (.outside(let reason), _): return .outside(reason)
        }
    }
}
