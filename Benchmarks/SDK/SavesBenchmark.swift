import ArgumentParser
import AsyncHTTPClient
import CloudKit
import NIOCore
import NIOHTTP1
import NIOSSL

/// `sdk-benchmarks saves`: a save through the SDK beside the same request without it, in turns in one run.
struct SavesBenchmark: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "saves", abstract: "CPU of a save through the SDK, beside the bare HTTPS request.")

    @Option(help: "Saves of each kind in a round.") var saves = 500
    @Option(help: "Rounds; the two kinds take turns in each.") var rounds = 10
    @Option(help: "Saves under way at once.") var concurrency = 16

    func run() async throws {
        let variables = try Variables()
        var tls = TLSConfiguration.makeClientConfiguration()
        tls.trustRoots = .certificates(try NIOSSLCertificate.fromPEMFile(variables.authority))
        let client = HTTPClient(
            eventLoopGroupProvider: .singleton, configuration: HTTPClient.Configuration(tlsConfiguration: tls))
        let database = CKContainer.default().privateCloudDatabase
        var (bare, through): ([Double], [Double]) = ([], [])
        for round in 0...rounds {
            func measureBare() async throws -> Double {
                try await cpu { index in try await Self.save(named: "bare-\(round)-\(index)", variables, client) }
            }
            func measureThrough() async throws -> Double {
                try await cpu { index in
                    let id = CKRecord.ID(recordName: "sdk-\(round)-\(index)-\(UUID().uuidString)")
                    try await database.save(Self.record(id))
                }
            }
            // Each comes first in every other round.
            let early = round.isMultiple(of: 2) ? try await measureThrough() : 0
            let without = try await measureBare()
            let with = round.isMultiple(of: 2) ? early : try await measureThrough()
            // The first round connects and makes the record type.
            if round > 0 { (bare, through) = (bare + [without], through + [with]) }
        }
        let differences = zip(through, bare).map { $0 - $1 }
        try await client.shutdown()
        print(
            """
            microseconds of this process's CPU a save, median of \(rounds) rounds of \(saves), \(concurrency) at once
            bare HTTPS request  \(text(bare))
            CKDatabase.save     \(text(through))
            difference          \(text(differences))
            """)
    }

    private func cpu(_ save: @escaping @Sendable (Int) async throws -> Void) async throws -> Double {
        let before = ProcessUsage.cpuMicroseconds
        try await withThrowingTaskGroup(of: Void.self) { group in
            for worker in 0..<concurrency {
                group.addTask {
                    for index in stride(from: worker, to: saves, by: concurrency) { try await save(index) }
                }
            }
            try await group.waitForAll()
        }
        return (ProcessUsage.cpuMicroseconds - before) / Double(saves)
    }

    private static func record(_ id: CKRecord.ID) -> CKRecord {
        let record = CKRecord(recordType: "Benchmark", recordID: id)
        record["title"] = "A title of about thirty letters"
        record["note"] = String(repeating: "words ", count: 25)
        record["createdAt"] = Date(timeIntervalSince1970: 1_750_000_000)
        record["checked"] = 1
        record["rating"] = 4.5
        return record
    }

    /// What the SDK asks for, as text that is there already.
    private static func save(named name: String, _ variables: Variables, _ client: HTTPClient) async throws {
        var request = HTTPClientRequest(url: variables.modifyURL)
        request.method = .POST
        request.headers.add(name: "Content-Type", value: "application/json; charset=UTF-8")
        request.body = .bytes(
            ByteBuffer(
                string: #"""
                    {"operations":[{"operationType":"create","record":{"recordType":"Benchmark","recordName":"\#(name)-\#(UUID().uuidString)",\#
                    "fields":{"title":{"value":"A title of about thirty letters","type":"STRING"},"note":{"value":"\#(note)","type":"STRING"},\#
                    "createdAt":{"value":1750000000000,"type":"TIMESTAMP"},"checked":{"value":1,"type":"INT64"},"rating":{"value":4.5,"type":"DOUBLE"}}}}]}
                    """#))
        let response = try await client.execute(request, timeout: .seconds(30))
        let body = try await response.body.collect(upTo: 1 << 20)
        // A record that failed has no change tag; its answer is shorter than what was sent.
        guard response.status == .ok, body.readableBytes > Self.answerBytesMin else {
            throw ValidationError("the bare request failed: \(String(buffer: body).prefix(500))")
        }
    }

    /// What the answer to a save has at least: the values that were saved.
    private static let answerBytesMin = 400
    private static let note = String(repeating: "words ", count: 25)

    private func median(_ figures: [Double]) -> Double { figures.sorted()[figures.count / 2] }

    private func text(_ figures: [Double]) -> String {
        "\(Int(median(figures).rounded()))  (\(Int((figures.min() ?? 0).rounded())) to \(Int((figures.max() ?? 0).rounded())))"
    }
}

/// The cluster, as the environment has it.
struct Variables: Sendable {
    let authority: String
    let modifyURL: String

    init() throws {
        func variable(_ name: String) throws -> String {
            guard let value = ProcessInfo.processInfo.environment["ZONEKEEPER_" + name] else {
                throw ValidationError("ZONEKEEPER_\(name) is not set; Benchmarks/run-sdk sets it")
            }
            return value
        }
        authority = try variable("CA")
        let url = try variable("URLS").split(separator: ",").first ?? ""
        let (api, user) = (try variable("API_TOKEN"), try variable("WEB_AUTH_TOKEN"))
        modifyURL =
            "\(url)/database/1/\(try variable("CONTAINER"))/\(try variable("ENVIRONMENT"))/private/records/modify"
            + "?ckAPIToken=\(api)&ckWebAuthToken=\(user)"
    }
}
