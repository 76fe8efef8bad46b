import ArgumentParser
import Foundation
import RecordModel
import ServiceClient

struct JobCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "job", abstract: "Count, export and delete all matches of a query, and look after such work.",
        discussion: """
            A job runs on a node, which pauses after each page so that it harms nobody, and goes on when the command \
            is interrupted. It is lost where that node is started anew: `job show` says so, and it is begun once more; \
            a deletion then goes on with what is left.
            """,
        subcommands: [
            JobCountCommand.self, JobExportCommand.self, JobDeleteCommand.self, JobListCommand.self,
            JobShowCommand.self, JobResultCommand.self, JobCancelCommand.self,
        ])
}

struct JobQuery: ParsableArguments {
    @OptionGroup var place: RecordOptions

    @Option(help: "The record type.")
    var type: String

    @Option(
        parsing: .unconditionalSingleValue,
        help: "A filter as `record query` takes it; may be repeated, then all must hold.")
    var filter: [String] = []

    @Flag(help: "Print the job's id, and do not wait for its end.")
    var noWait = false

    func validate() throws { for text in filter { _ = try FilterArgument(parsing: text) } }

    func begin(_ kind: String, format: String? = nil, on connection: Connection) async throws -> JSONValue {
        let filters = try filter.map { try FilterArgument(parsing: $0).json }
        let body = JSONValue.members([
            "container": .string(try connection.container()),
            "environment": .string(connection.settings.environment), "database": .string(place.database.rawValue),
            "zoneID": place.zoneID, "format": .given(format),
            "query": .members([
                "recordType": .string(type), "filterBy": filters.isEmpty ? nil : .array(filters),
            ]),
        ])
        try connection.needAdministrator()
        var request = ServiceRequest(
            .post, "/admin/1/jobs/\(kind)", body: body.serialized(), isAdministrative: true, isRepeatable: false)
        request.credentials = connection.settings.actingID.map { .acting(id: $0) }
        return try await connection.send(request).checked().json()
    }
}

enum JobText {
    /// Follows a job to its end.
    /// - Throws: `CommandFailure` where it failed, was cancelled, or was lost.
    static func follow(_ job: JSONValue, on connection: Connection) async throws -> JSONValue {
        var line = ProgressLine()
        var job = job
        let id = job.text("id")
        do {
            while job["state"]?.string == "running" {
                line.show(progress(job))
                job = try await connection.administer("GET", "jobs/state", parameters: ["id": id, "wait": "true"])
                    .json()
            }
        } catch {
            line.abandon()
            throw CommandFailure("\(error)\nerror: the job may go on: `zonekeeper job show \(id)` tells")
        }
        guard job["state"]?.string == "done" else {
            line.abandon()
            throw CommandFailure("job \(id): \(state(job))")
        }
        line.finish(progress(job))
        return job
    }

    /// Such as `1200 records deleted, 3 left`.
    static func progress(_ job: JSONValue) -> String {
        let verbs = ["count": "counted", "export": "written", "delete": "deleted"]
        guard let kind = job["kind"]?.string else { return job.text("state") }
        let left = (job.amount("left") ?? 0) > 0 ? ", \(job.text("left")) left" : ""
        let waiting = job["waiting"]?.string.map { " (waits: \($0))" } ?? ""
        let count = job.text("records")
        return "\(count) \(count == "1" ? "record" : "records") \(verbs[kind] ?? kind)\(left)\(waiting)"
    }

    static func state(_ job: JSONValue) -> String {
        let reason = job["problem"].map { ": \($0.text("code")): \($0.text("reason"))" } ?? ""
        let progress = job["kind"] == nil ? "" : ", \(progress(job))"
        return "\(job.text("state"))\(progress)\(reason)"
    }

    static func table(_ jobs: [JSONValue]) -> Table {
        Table(
            jobs,
            [
                .time("BEGAN", "began"), .text("KIND", "kind"), .text("DATABASE", "database"),
                .text("TYPE", "recordType"), .text("FILTERS", "filters"), .text("STATE", "state"),
                .text("RECORDS", "records"), .text("BY", "by"), .text("JOB", "id"),
            ])
    }
}

struct JobCountCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "count", abstract: "Count the records of a type for which every filter holds.")

    @OptionGroup var options: ClientOptions
    @OptionGroup var query: JobQuery

    func run(on connection: Connection) async throws {
        var job = try await query.begin("count", on: connection)
        if !query.noWait { job = try await JobText.follow(job, on: connection) }
        try show(job, query.noWait ? job.text("id") : job.text("records"))
    }
}

struct JobExportCommand: ClientCommand {
    enum Format: String, ExpressibleByArgument, CaseIterable {
        case csv, json, lines
    }

    static let configuration = CommandConfiguration(
        commandName: "export", abstract: "Write the records of a type for which every filter holds to a file.",
        discussion: """
            csv is a table for spreadsheets, json an array of records as Web Services have them, and lines has one \
            record on each line, as `record import` takes it. Files of assets are not part of it. An export comes to \
            256 MB at most; its node keeps it for an hour.
            """)

    @OptionGroup var options: ClientOptions
    @OptionGroup var query: JobQuery

    @Option(help: "How records are written.")
    var format = Format.json

    @Option(
        name: [.short, .long],
        help: ArgumentHelp("The file to write; `-`, which is usual, is standard output.", valueName: "file"))
    var output = "-"

    func validate() throws {
        if query.noWait, output != "-" {
            throw ValidationError("--no-wait: `job result` writes the file once the job is done")
        }
    }

    func run(on connection: Connection) async throws {
        var job = try await query.begin("export", format: format.rawValue, on: connection)
        if query.noWait { return try show(job, job.text("id")) }
        job = try await JobText.follow(job, on: connection)
        try await JobResultFile.write(job, to: output, on: connection)
        if output != "-" { try show(job, "wrote \(output), \(job.text("records")) records") }
    }
}

struct JobDeleteCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "delete", abstract: "Delete the records of a type for which every filter holds.",
        discussion: """
            `job count` with the same options says first how many these are. A record that is changed while the job \
            runs is left; its exit code is then 1.
            """)

    @OptionGroup var options: ClientOptions
    @OptionGroup var query: JobQuery

    @Flag(help: "All records of the type: there is no filter.")
    var all = false

    @Option(help: ArgumentHelp("The container's name once more.", valueName: "container"))
    var confirm: String

    func validate() throws {
        if query.filter.isEmpty != all {
            throw ValidationError("either --filter is expected, or --all for all records of the type")
        }
    }

    func run(on connection: Connection) async throws {
        let container = try connection.container()
        guard confirm == container else {
            throw ValidationError(
                "--confirm: the container's name is expected once more, '\(container)', not '\(confirm)'")
        }
        var job = try await query.begin("delete", on: connection)
        if query.noWait { return try show(job, job.text("id")) }
        job = try await JobText.follow(job, on: connection)
        try show(job, "deleted \(job.text("records"))")
        guard let left = job.amount("left"), left > 0 else { return }
        throw CommandFailure("\(left) left, the first because of \(job["problem"]?.text("reason") ?? "")")
    }
}

struct JobListCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "List the jobs that all nodes remember, the newest first.")

    @OptionGroup var options: ClientOptions

    @Flag(help: "Of all containers.")
    var all = false

    func run(on connection: Connection) async throws {
        let response =
            all ? try await connection.administer("GET", "jobs") : try await connection.administerPlace("GET", "jobs")
        let table = JobText.table(try response.entries("jobs"))
        let lines = [table.rows.isEmpty ? "no jobs" : table.text] + RequestTable.problems(try response.json())
        try show(response, lines.joined(separator: "\n"))
    }
}

struct JobShowCommand: ClientCommand {
    static let configuration = CommandConfiguration(commandName: "show", abstract: "Say how far a job is.")

    @OptionGroup var options: ClientOptions

    @Argument(help: "The job's id.")
    var job: String

    @Flag(help: "Wait for its end.")
    var wait = false

    func run(on connection: Connection) async throws {
        var json = try await connection.administer("GET", "jobs/state", parameters: ["id": job]).json()
        if wait { json = try await JobText.follow(json, on: connection) }
        try show(json, JobText.state(json))
    }
}

struct JobResultCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "result", abstract: "Write what an export came to to a file, within an hour of its end.")

    @OptionGroup var options: ClientOptions

    @Argument(help: "The job's id.")
    var job: String

    @Option(
        name: [.short, .long],
        help: ArgumentHelp("The file to write; `-`, which is usual, is standard output.", valueName: "file"))
    var output = "-"

    func run(on connection: Connection) async throws {
        let json = try await connection.administer("GET", "jobs/state", parameters: ["id": job]).json()
        guard json["state"]?.string == "done" else { throw CommandFailure("job \(job): \(JobText.state(json))") }
        try await JobResultFile.write(json, to: output, on: connection)
        if output != "-" { try show(json, "wrote \(output), \(json.text("records")) records") }
    }
}

struct JobCancelCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "cancel", abstract: "End a job that runs; one that has ended is forgotten, with its result.")

    @OptionGroup var options: ClientOptions

    @Argument(help: "The job's id.")
    var job: String

    func run(on connection: Connection) async throws {
        let response = try await connection.administer("DELETE", "jobs", parameters: ["id": job], isRepeatable: true)
        let json = try response.json()
        try show(
            response,
            json["state"]?.string == "running"
                ? "cancelled after \(JobText.progress(json))" : "forgot the job: \(JobText.state(json))")
    }
}

/// An export's result on its way to a file, part by part: each may come from another node.
enum JobResultFile {
    private static let partBytes: Int64 = 4 << 20

    static func write(_ job: JSONValue, to output: String, on connection: Connection) async throws {
        let total = job.amount("bytes") ?? 0
        try await OutputFile(path: output).write { file in
            var place: Int64 = 0
            while place < total {
                let part = try await connection.administer(
                    "GET", "jobs/result",
                    parameters: ["id": job.text("id"), "offset": String(place), "length": String(partBytes)]
                ).body
                guard !part.isEmpty else { throw CommandFailure("the result ended after \(place) of \(total) bytes") }
                try file.write(contentsOf: part)
                place += Int64(part.count)
            }
        }
    }
}
