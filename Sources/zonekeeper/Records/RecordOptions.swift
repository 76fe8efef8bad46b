import ArgumentParser
import RecordModel
import ServiceClient

/// Which records a command is about: whose, and in which zone.
struct RecordOptions: ParsableArguments {
    /// A database of the container.
    enum Database: String, ExpressibleByArgument, CaseIterable {
        case `public`
        case `private`
    }

    @Option(help: "The container's database: everybody's, or the session's user's.")
    var database = Database.public

    @Option(help: "The zone; only the private database has others than the default one.")
    var zone = ZoneKey.defaultZoneName

    /// The zone in the protocol's form.
    var zoneID: JSONValue { .members(["zoneName": .string(zone)]) }

    /// A request about records of the zone.
    /// - Parameter isZoneWide: whether it names no zone, as it is about all of them.
    func request(
        _ action: String, _ members: KeyValuePairs<String, JSONValue?>, isZoneWide: Bool = false,
        on connection: Connection
    ) throws -> ServiceRequest {
        guard case .object(let given) = JSONValue.members(members) else {
            preconditionFailure("members make an object")
        }
        return try connection.request(
            database.rawValue, action,
            .object((isZoneWide ? [] : [JSONValue.Member("zoneID", zoneID)]) + given))
    }

    /// A request that changes records; it carries an idempotency key.
    func modify(_ operations: [JSONValue], on connection: Connection) throws -> ServiceRequest {
        var request = try request("records/modify", ["operations": .array(operations)], on: connection)
        request.idempotencyKey = IdempotencyKeys.make()
        return request
    }
}

extension ServiceResponse {
    /// The records of an answer, those that failed among them.
    /// - Throws: `CommandFailure` if the request failed as a whole. Of an atomic batch it says what failed in it.
    func records() throws(CommandFailure) -> [JSONValue] {
        if status == 400, let records = (try? json())?["records"]?.array {
            let reasons = Self.failures(in: records).filter { !$0.hasPrefix("ATOMIC_ERROR") }
            throw CommandFailure((reasons.isEmpty ? ["ATOMIC_ERROR"] : reasons).joined(separator: "\nerror: "))
        }
        return try checked().json()["records"]?.array ?? []
    }
}

/// Ends a command some of whose records failed.
enum RecordFailures {
    /// - Throws: `ExitCode` after each failure has been said.
    static func report(in records: [JSONValue]) throws {
        let failures = ServiceResponse.failures(in: records)
        for failure in failures { Console.error(failure) }
        if !failures.isEmpty { throw ExitCode.failure }
    }

    /// The records that did not fail.
    static func without(_ records: [JSONValue]) -> [JSONValue] {
        records.filter { $0["serverErrorCode"] == nil }
    }
}
