import Cluster
package import Directory
import RecordModel
package import RecordStore

/// What containers hold and carry.
package struct UsageAdministration: Sendable {
    /// A page of what a container's databases hold, and what its public data carried.
    package struct Page: Sendable {
        /// One database, and what it may hold.
        package struct Database: Sendable {
            /// What it holds.
            package var usage: ContainerUsage.Database
            /// What it may hold.
            package var cap: QuotaAmounts
            /// The name of the user whose private data it is, where there still is one.
            package var user: String?
        }

        /// By scope and owner.
        package var databases: [Database]
        /// Where the list goes on.
        package var next: UsagePosition?
        /// What the month's requests for public data carried and may carry, in bytes.
        package var transfer: (month: UInt64, bytes: Int64, limit: Int64)
    }

    let administration: Administration
    private var service: RecordService { administration.service }
    /// A page of a recount reads many records.
    private static let recountDeadlineMilliseconds: UInt64 = 60_000

    /// - Parameter user: whose private data is meant; nil: all databases of the container's environment.
    package func page(
        of key: SchemaKey, user: String?, after: UsagePosition?, _ detail: UsageRequest.Detail
    ) async throws(RequestFailure) -> Page {
        let directory = try await administration.directory(with: key.container)
        let request =
            if let user {
                UsageRequest(
                    of: DatabaseKey(privateDataOf: try await administration.owner(named: user), in: key),
                    after: after, detail: detail)
            } else {
                UsageRequest(
                    container: key.container, environment: key.environment, after: after, detail: detail)
            }
        let deadline =
            detail == .recount || detail == .types
            ? service.node.deadline(milliseconds: Self.recountDeadlineMilliseconds) : service.deadline()
        let usage = try await ContainerUsage.page(request, in: service, by: deadline)
        let transfer = try await transfer(of: key, in: directory)
        let names = try await service.accounts.names(ofOwners: usage.databases.map(\.key))
        let databases = usage.databases.map {
            Page.Database(
                usage: $0, cap: service.quotas.quota(of: $0.key, in: directory).cap, user: names[$0.key.owner])
        }
        return Page(databases: databases, next: usage.next, transfer: transfer)
    }

    /// What the public database of a container's environment may hold, in bytes without files.
    package func publicLimit(of key: SchemaKey) async throws(RequestFailure) -> Int64 {
        let directory = try await administration.directory(with: key.container)
        return service.quotas.quota(of: DatabaseKey(publicDataIn: key), in: directory).cap.bytes
    }

    private func transfer(
        of key: SchemaKey, in directory: DirectorySnapshot
    ) async throws(RequestFailure) -> (month: UInt64, bytes: Int64, limit: Int64) {
        let database = DatabaseKey(publicDataIn: key)
        let ledger = try await service.quotas.ledger(of: database, by: service.deadline())
        let month = QuotaTransfer.month(of: service.now)
        return (
            month, ledger.transferMonth == month ? Int64(clamping: ledger.transferBytes) : 0,
            ContainerUsage.transferLimit(of: database, in: directory)
        )
    }
}
