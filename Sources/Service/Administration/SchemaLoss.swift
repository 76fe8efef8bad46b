import Cluster
import Directory
import RecordModel
import RecordStore

/// From how many records a change of a schema takes something: those that have the field, or are of the type.
package struct SchemaLoss: Hashable, Sendable {
    /// In all databases of the environment.
    package var records: Int64
    /// Whether it is so many; else it is so many at most.
    package var isExact: Bool

    /// Environments with more records, or more bytes of them, are not looked through.
    private static let countedMax: Int64 = 100_000
    private static let countedBytesMax: Int64 = 64 << 20
    private static let deadlineMilliseconds: UInt64 = 10_000

    /// What each change of a plan takes that takes anything. Where the shards cannot be asked, nothing is said: a plan
    /// is told without them, too.
    static func all(
        of plan: SchemaPlan, in key: SchemaKey, _ service: RecordService
    ) async -> [SchemaChange: SchemaLoss] {
        let changes = plan.changes.filter(\.losesData)
        guard !changes.isEmpty, let sums = await sums(of: key, service) else { return [:] }
        var lost: [SchemaChange: Int64] = [:]
        var isExact = sums.records <= countedMax && sums.bytes <= countedBytesMax
        if isExact {
            do throws(RequestFailure) {
                try await visit(key, .fields, service) { database in
                    for type in database.zones.flatMap(\.types) {
                        for change in changes where change.typeName == type.name {
                            lost[change, default: 0] += Self.records(of: type, with: change.fieldName)
                        }
                    }
                }
            } catch {
                isExact = false
            }
        }
        return Dictionary(
            uniqueKeysWithValues: changes.map { change in
                (change, SchemaLoss(records: isExact ? lost[change] ?? 0 : sums.records, isExact: isExact))
            })
    }

    /// What all databases of an environment hold; nil where the shards cannot be asked.
    static func sums(of key: SchemaKey, _ service: RecordService) async -> QuotaAmounts? {
        var sums = QuotaAmounts.zero
        do throws(RequestFailure) {
            try await visit(key, .sums, service) { sums = sums + $0.used }
        } catch {
            return nil
        }
        return sums
    }

    private static func records(of type: TypeUsage, with field: String?) -> Int64 {
        guard let field else { return type.records }
        return type.byField.first { $0.name == field }?.records ?? 0
    }

    /// Goes through an environment's databases, page by page.
    private static func visit(
        _ key: SchemaKey, _ detail: UsageRequest.Detail, _ service: RecordService,
        body: (ContainerUsage.Database) -> Void
    ) async throws(RequestFailure) {
        let deadline = service.node.deadline(milliseconds: deadlineMilliseconds)
        var request = UsageRequest(container: key.container, environment: key.environment, detail: detail)
        repeat {
            let page = try await ContainerUsage.page(request, in: service, by: deadline)
            page.databases.forEach(body)
            request.after = page.next
        } while request.after != nil
    }
}
