import ArgumentParser
import CloudKit

/// Runs what the seeds show, against a cluster.
@main
struct SeedApps: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "seed-apps",
        abstract: "Runs the apps of the seeds against a cluster; scripts/seed-apps prepares one.",
        subcommands: [Run.self, Device.self, Notes.self], defaultSubcommand: Run.self)

    /// Every row, each number once.
    static let rows: [SeedRow] = {
        let rows = (RestaurantRows.rows + FastingRows.rows + EstablishmentRows.rows + PeopleRows.rows + TaskRows.rows)
            .sorted { $0.number < $1.number }
        precondition(rows.map(\.number) == Array(1...96), "rows: \(rows.map(\.number))")
        return rows
    }()

    /// The table of rows.
    struct Run: AsyncParsableCommand {
        @Option(help: "A file with the session's token of another user than the environment's.")
        var otherUserTokenFile: String

        @Argument(help: "The numbers of the rows to run; all of them without one.")
        var numbers: [Int] = []

        func run() async throws {
            // A line is shown as soon as its row is done, wherever the output goes.
            setvbuf(stdout, nil, _IOLBF, 0)
            let token = try String(contentsOfFile: otherUserTokenFile, encoding: .utf8)
                .trimmingCharacters(in: .whitespacesAndNewlines)
            let surroundings = try Surroundings(otherUserToken: token, run: UUID().uuidString.prefix(8).lowercased())
            try await surroundings.clean()
            var tally = Tally()
            for row in SeedApps.rows where numbers.isEmpty || numbers.contains(row.number) {
                let outcome = await row.outcome(in: surroundings)
                print(tally.line(row, outcome))
                if case .failed = outcome { try await surroundings.clean() }
            }
            try await surroundings.clean()
            print(tally.summary)
            if tally.failed > 0 { throw ExitCode(1) }
        }
    }

    /// Another device of a user: one call on its preferences, or the first notification of a subscription.
    struct Device: AsyncParsableCommand {
        @Argument var action: String
        @Argument var key: String
        @Argument var value: String?

        func run() async throws {
            if action == "told" {
                print(try await PeopleRows.told(key).sequence)
                return
            }
            let store = NSUbiquitousKeyValueStore.default
            try await store.waitForInitialSync()
            if action == "set" { store.set(value, forKey: key) }
            try await store.synchronizeNow()
            print(store.string(forKey: key) ?? "")
        }
    }

    /// The notes tool.
    struct Notes: AsyncParsableCommand {
        @Option(help: "The file that keeps the copy.")
        var file = "notes.json"

        @Argument(parsing: .captureForPassthrough)
        var arguments: [String] = []

        func run() async throws {
            var app = NotesApp(file: URL(fileURLWithPath: file))
            for line in try await app.run(arguments) { print(line) }
        }
    }
}

/// Counts outcomes.
struct Tally {
    private(set) var passed = 0
    private(set) var failed = 0
    private var waiting: [String: Int] = [:]
    private var outside = 0

    mutating func line(_ row: SeedRow, _ outcome: RowOutcome) -> String {
        let start = String(repeating: " ", count: row.number < 10 ? 1 : 0) + "\(row.number)  "
        switch outcome {
        case .passed:
            passed += 1
            return start + "passed   " + row.title
        case .pending(let subject):
            waiting[subject, default: 0] += 1
            return start + "pending  " + row.title + "  [\(subject)]"
        case .outside(let reason):
            outside += 1
            return start + "outside  " + row.title + "  [\(reason)]"
        case .failed(let problem):
            failed += 1
            return start + "FAILED   " + row.title + "\n              " + problem
        }
    }

    var summary: String {
        let subjects = Subject.allCases.compactMap { subject in
            waiting[subject.rawValue].map { "\(subject.rawValue) \($0)" }
        }
        let pending = waiting.values.reduce(0, +)
        return
            "\(passed) passed, \(pending) pending (\(subjects.joined(separator: ", "))), \(outside) outside, \(failed) failed"
    }
}
