import Directory
import RecordModel
import Service

/// `GET usage/days`: what a container's environment used, day by day.
struct UsageDayRoutes {
    let request: AdminRequest

    func show() async throws(RequestFailure) -> Reply {
        _ = try request.url.need("container")
        let key = try request.url.schemaKey()
        let usage = request.administration.usage
        let limit = try await usage.publicLimit(of: key)
        let days = try await request.responder.context.history.days(of: key)
        let forecast = StorageForecast(days, limit: limit)
        let today = DayUsage.day(of: request.service.now)
        return Reply { writer in
            writer.members(of: key)
            writer.member("stepSeconds", integer: DayUsage.milliseconds / 1_000)
            writer.member("from", integer: (today - Int64(UsageHistory.daysMax) + 1) * DayUsage.milliseconds)
            writer.member("until", integer: (today + 1) * DayUsage.milliseconds)
            writer.list("days", days) { day, writer in
                writer.member("time", integer: day.day * DayUsage.milliseconds)
                writer.members(of: day.usage)
            }
            writer.member("limitBytes", integer: limit)
            writer.optional("bytesPerDay", integer: forecast?.bytesPerDay)
            writer.optional("daysUntilFull", integer: forecast?.daysUntilFull)
        }
    }
}

extension JSONWriter {
    fileprivate mutating func members(of usage: DayUsage) {
        member("requests", count: usage.requests)
        member("errors", count: usage.errors)
        member("bytesIn", count: usage.bytesIn)
        member("bytesOut", count: usage.bytesOut)
        member("notifications", count: usage.notifications)
        member("activeUsers", count: usage.users.count)
        guard let storage = usage.storage else { return }
        member("publicBytes", integer: storage.publicBytes)
        member("privateBytes", integer: storage.privateBytes)
        member("assetBytes", integer: storage.assetBytes)
        member("records", integer: storage.records)
    }
}
