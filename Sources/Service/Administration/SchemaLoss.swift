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

    /// Environments with more records are not looked through.
    private static let countedMax: Int64 = 100_000
    private static let deadlineMilliseconds: UInt64 = 10_000

    /// What each change of a plan takes that takes anything. Where the shards cannot be asked, nothing is said: a plan
    /// is told without them, too.
    static func all(
        of plan: SchemaPlan, in key: SchemaKey, _ service: RecordService
    ) async -> [SchemaChange: SchemaLoss] {
        let changes = plan.changes.filter(\.losesData)
        guard !changes.isEmpty, let sums = try? await usage(of: key, .sums, service) else { return [:] }
        let records = sums.reduce(0) { $0 + $1.used.records }
        guard records <= countedMax, let databases = try? await usage(of: key, .fields, service) else {
            return Dictionary(uniqueKeysWithValues: changes.map { ($0, SchemaLoss(records: records, isExact: false)) })
        }
        let types = databases.flatMap(\.zones).flatMap(\.types)
        let losses = changes.map { change in
            let counts = types.filter { $0.name == change.typeName }.map { type in
                guard let field = change.fieldName else { return type.records }
                return type.byField.first { $0.name == field }?.records ?? 0
            }
            return (change, SchemaLoss(records: counts.reduce(0, +), isExact: true))
        }
        return Dictionary(uniqueKeysWithValues: losses)
    }

    /// All pages of an environment's usage.
    private static func usage(
        of key: SchemaKey, _ detail: UsageRequest.Detail, _ service: RecordService
    ) async throws(RequestFailure) -> [ContainerUsage.Database] {
        let deadline = service.node.deadline(milliseconds: deadlineMilliseconds)
        var request = UsageRequest(container: key.container, environment: key.environment, detail: detail)
        var databases: [ContainerUsage.Database] = []
        repeat {
            let page = try await ContainerUsage.page(request, in: service, by: deadline)
            databases += page.databases
            request.after = page.next
        } while request.after != nil
        return databases
    }
}
