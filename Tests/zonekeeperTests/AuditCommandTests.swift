import ArgumentParser
import Directory
import Foundation
import NIOHTTP1
import RecordModel
import ServiceClient
import TestSupport
import Testing

@testable import zonekeeper

@Suite("Reading and verifying the audit log")
struct AuditCommandTests {
    /// A chain of records with numbers from `first`.
    private static func records(_ count: Int, from first: UInt64 = 1) -> [AuditRecord] {
        var previous =
            first == 1 ? AuditRecord.firstPreviousHash : [UInt8](repeating: 7, count: 32)
        return (0..<UInt64(count)).map { position in
            let event = AuditEvent(
                origin: AuditOrigin(
                    actor: "administrator", requestID: "r\(position)", address: "", time: Int64(position) * 1_000),
                action: "user.create", subject: "user \(position)", outcome: "done", count: 1 + position % 2)
            let record = AuditRecord(event, sequence: first + position, previousHash: previous)
            previous = record.hash
            return record
        }
    }

    /// As the administration answers.
    private static func json(_ record: AuditRecord) -> JSONValue {
        let event = record.event
        return .members([
            "sequence": .integer(Int64(record.sequence)), "time": .integer(event.origin.time),
            "actor": .string(event.origin.actor), "action": .string(event.action), "subject": .string(event.subject),
            "outcome": .string(event.outcome), "requestID": .string(event.origin.requestID),
            "address": .string(event.origin.address), "count": .integer(Int64(event.count)),
            "previousHash": .string(Hex.encode(record.previousHash)), "hash": .string(Hex.encode(record.hash)),
        ])
    }

    private func verify(_ records: [AuditRecord], expecting marks: [AuditMark] = []) throws -> AuditChain {
        var chain = AuditChain(expecting: marks)
        for record in records { try chain.take(record) }
        try chain.finish()
        return chain
    }

    private func failure(_ records: [AuditRecord], expecting marks: [AuditMark] = []) -> String {
        #expect(throws: CommandFailure.self) { try verify(records, expecting: marks) }?.message ?? ""
    }

    @Test("A record read from an answer is the record, hash and all")
    func read() throws {
        for record in Self.records(3) { #expect(try AuditRecord(Self.json(record)) == record) }
        let record = try #require(Self.records(1).first)
        guard case .object(let members) = Self.json(record) else { return }
        for (position, member) in members.enumerated() {
            var others = members
            others.remove(at: position)
            #expect(throws: CommandFailure.self, "\(member.key)") { try AuditRecord(.object(others)) }
        }
    }

    @Test("A whole chain is right, from its beginning or from where retention left it")
    func right() throws {
        let records = Self.records(5)
        let chain = try verify(records)
        #expect(chain.text == "5 records are right\nnewest 5:\(Hex.encode(records[4].hash))")
        let later = Self.records(1, from: 40)
        #expect(try verify(later).text.hasPrefix("1 record is right (from record 40; earlier ones are past retention)"))
        #expect(try verify([]).text == "the audit log has no records")
    }

    @Test("What was changed, left out, moved or put in is named")
    func broken() {
        let records = Self.records(5)
        var changed = records
        changed[2].event.subject = "user nobody"
        #expect(failure(changed).contains("record 3 is not what it was"))
        #expect(failure(changed).hasSuffix("every record up to 2 is right"))
        var rehashed = changed
        rehashed[2].hash = rehashed[2].expectedHash
        #expect(failure(rehashed).contains("record 4 is not what it was, or does not follow"))
        #expect(failure([records[0], records[2]]).contains("record 2 is missing, record 3 follows"))
        #expect(failure([records[0], records[1], records[1]]).contains("was changed"))
        #expect(failure([records[1], records[0]]).contains("was changed"))
        let other = AuditRecord(records[0].event, sequence: 1, previousHash: [UInt8](repeating: 9, count: 32))
        #expect(failure([other]).contains("record 1 follows a record that never was"))
    }

    @Test("A log whose beginning is gone does not begin where it must")
    func beginning() throws {
        let records = Self.records(3)
        let right = AuditAnswer(
            records: [], firstSequence: 2, firstPreviousHash: records[1].previousHash)
        #expect(throws: Never.self) { try AuditChain.check(first: records[1], of: right) }
        let error = #expect(throws: CommandFailure.self) { try AuditChain.check(first: records[2], of: right) }
        #expect(error?.message.contains("record 2 is missing, record 3 stands where it was") == true)
        let silent = AuditAnswer(records: [])
        #expect(throws: Never.self) { try AuditChain.check(first: records[2], of: silent) }
    }

    @Test("A chain made anew is found out by a hash that was kept elsewhere")
    func expected() throws {
        let records = Self.records(5)
        let mark = try #require(AuditMark(argument: "3:" + Hex.encode(records[2].hash)))
        #expect(throws: Never.self) { try verify(records, expecting: [mark]) }
        let wrong = AuditMark(sequence: 3, hash: records[3].hash)
        #expect(failure(records, expecting: [mark, wrong]).contains("the hash \(Hex.encode(records[2].hash))"))
        let absent = AuditMark(sequence: 9, hash: mark.hash)
        #expect(failure(records, expecting: [absent]).contains("record 9 is missing, the newest is 5"))
        #expect(failure(Self.records(1, from: 40), expecting: [mark]).contains("past retention"))
    }

    @Test("Pages are followed to the end, and a log that is not right ends the command")
    func pages() async throws {
        let records = Self.records(1_234)
        var wrong = records
        wrong[1_000].event.outcome = "refused"
        for (log, isRight) in [(records, true), (wrong, false)] {
            let answer: @Sendable (ScriptedRequest, Int) -> ScriptedAnswer = { request, _ in
                let after = Int(request.parameter("after") ?? "") ?? 0
                let before = Int(request.parameter("before") ?? "") ?? log.count + 1
                let limit = Int(request.parameter("limit") ?? "") ?? 0
                let isNewest = request.parameter("order") == "newest"
                let page =
                    isNewest
                    ? log.prefix(before - 1).suffix(limit).reversed() : Array(log.dropFirst(after).prefix(limit))
                let isEnd = isNewest ? page.last?.sequence == 1 : page.last?.sequence == log.last?.sequence
                let body = JSONValue.members([
                    "records": .array(page.map(Self.json)), "moreComing": .bool(!isEnd),
                    "cursor": isEnd ? nil : .integer(Int64(page.last?.sequence ?? 0)),
                ])
                return ScriptedAnswer(body: String(decoding: body.serialized(), as: UTF8.self))
            }
            try await TemporaryFolder.with { folder in
                let secret = folder + "/admin.token"
                try PrivateFile.create(secret, "s\n")
                try await ScriptedServer.running(answer) { server in
                    let place = ["--url", server.url, "--admin-token-file", secret]
                    let verify = try AuditVerifyCommand.parse(place)
                    if isRight {
                        try await verify.run()
                        #expect(server.requests.map { $0.parameter("after") } == ["0", "500", "1000"])
                        #expect(server.requests.allSatisfy { $0.headers.first(name: "Authorization") == "Bearer s" })
                        let options = try ClientOptions.parse(place)
                        let newest = try await options.withConnection {
                            try await AuditPages(connection: $0).newest(600)
                        }
                        #expect(newest == log.suffix(600).map(Self.json))
                        #expect(server.requests.suffix(2).map { $0.parameter("before") } == [nil, "735"])
                        let file = folder + "/audit.csv"
                        try await AuditExportCommand.parse(place + ["--actor", "ada", "--output", file]).run()
                        let lines = try String(contentsOfFile: file, encoding: .utf8).split(separator: "\r\n")
                        #expect(lines.count == 1_235 && lines.last?.hasPrefix("1234,1970-01-01T00:20:33.000Z,") == true)
                        #expect(server.requests.last?.parameter("actor") == "ada")
                    } else {
                        let error = await #expect(throws: CommandFailure.self) { try await verify.run() }
                        #expect(error?.message.contains("record 1001 is not what it was") == true)
                    }
                }
            }
        }
    }

    @Test("More to come, and nothing of it, is no end of the log")
    func silentEnd() async throws {
        try await TemporaryFolder.with { folder in
            let secret = folder + "/admin.token"
            try PrivateFile.create(secret, "s\n")
            let answer = ScriptedAnswer(body: #"{"records":[],"moreComing":true}"#)
            try await ScriptedServer.running({ _, _ in answer }) { server in
                let verify = try AuditVerifyCommand.parse(["--url", server.url, "--admin-token-file", secret])
                let error = await #expect(throws: CommandFailure.self) { try await verify.run() }
                #expect(error?.message.contains("and not from where") == true)
            }
        }
    }

    @Test("Records are shown with who, what and how it ended, the headings once over all pages")
    func table() {
        let records = Self.records(3).map(Self.json)
        var printer = AuditPrinter(isJSON: false)
        #expect(
            printer.text(of: Array(records[..<2])) == """
                RECORD  TIME                  ACTOR          ACTION       SUBJECT  OUTCOME         ADDRESS  REQUEST
                1       1970-01-01T00:00:00Z  administrator  user.create  user 0   done                     r0
                2       1970-01-01T00:00:01Z  administrator  user.create  user 1   done (2 times)           r1

                """)
        #expect(
            printer.text(of: Array(records[2...]))
                == "3       1970-01-01T00:00:02Z  administrator  user.create  user 2   done                     r2\n")
        #expect(printer.text(of: []).isEmpty && printer.end.isEmpty)
        #expect(AuditPrinter(isJSON: false).end == "no records\n")
    }

    @Test("As JSON all pages are one document")
    func json() throws {
        let records = Self.records(3).map(Self.json)
        var printer = AuditPrinter(isJSON: true)
        let text = printer.text(of: Array(records[..<2])) + printer.text(of: []) + printer.text(of: [records[2]])
        #expect(try JSONParser.parse(Array((text + printer.end).utf8)) == .members(["records": .array(records)]))
        let none = try JSONParser.parse(Array(AuditPrinter(isJSON: true).end.utf8))
        #expect(none == .members(["records": .array([])]))
    }
}
