// The least that a client can do: one connection per server, one prepared question each 100 ms, answers read and dropped.
// Arguments: pairs of a connection string and a statement. libpq's few functions are declared here, as its headers are not
// everywhere where its library is.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef struct pg_conn PGconn;
typedef struct pg_result PGresult;
extern PGconn *PQconnectdb(const char *);
extern int PQstatus(const PGconn *);
extern char *PQerrorMessage(const PGconn *);
extern PGresult *PQprepare(PGconn *, const char *, const char *, int, const unsigned *);
extern PGresult *PQexecPrepared(PGconn *, const char *, int, const char *const *, const int *, const int *, int);
extern int PQresultStatus(const PGresult *);
extern void PQclear(PGresult *);

static void fail(PGconn *connection) {
    fprintf(stderr, "%s", PQerrorMessage(connection));
    exit(1);
}

int main(int count, char **arguments) {
    int servers = (count - 1) / 2;
    PGconn **connections = calloc(servers, sizeof *connections);
    for (int i = 0; i < servers; i++) {
        connections[i] = PQconnectdb(arguments[1 + 2 * i]);
        if (PQstatus(connections[i]) != 0) fail(connections[i]);
        PGresult *prepared = PQprepare(connections[i], "question", arguments[2 + 2 * i], 0, NULL);
        if (PQresultStatus(prepared) != 1) fail(connections[i]);
        PQclear(prepared);
    }
    struct timespec next;
    clock_gettime(CLOCK_MONOTONIC, &next);
    for (;;) {
        for (int i = 0; i < servers; i++) {
            PGresult *answer = PQexecPrepared(connections[i], "question", 0, NULL, NULL, NULL, 1);
            if (PQresultStatus(answer) != 2) fail(connections[i]);
            PQclear(answer);
        }
        next.tv_nsec += 100 * 1000 * 1000;
        if (next.tv_nsec >= 1000 * 1000 * 1000) {
            next.tv_nsec -= 1000 * 1000 * 1000;
            next.tv_sec++;
        }
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
    }
}
